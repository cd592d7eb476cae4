//! What the system is tested and shown on and with: the network lab, the rig of real processes, and the demo.

pub mod clock;
pub mod demo;
pub mod netlab;
pub mod recorder;
pub mod rig;
