//! Tests of the data plane over real sockets.
