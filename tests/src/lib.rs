//! What the system is tested on and with: the network lab and the clock its tests read.

pub mod clock;
pub mod netlab;
