//! Traces of exits, and what each way of choosing makes of them.
//!
//! Pure and seeded: the same trace and the same rule give the same result everywhere.
//!
//! - [`random`]: the generator that everything here draws from
//! - [`trace`]: how two legs per exit behave over time, and what is true in each moment
//! - [`run`]: a rule on a trace: excess over an oracle with hindsight, switches, time on an unusable exit
//! - [`best`]: the `best` strategy as a rule, and the rule of the panel it comes from
//! - [`peers`]: other systems' rules as they are published, quirks included
//! - [`groups`]: the policies of [`crate::policy`] as rules
//! - [`scenarios`]: the traces that rules are judged by, with what is accepted
//! - [`history`]: what was really measured, as a file and as a trace
//! - [`report`] and [`suggest`]: what ways of choosing would have made of it, and which settings suit it
//! - [`question`]: a replay as it is asked for from outside, with everything that can be wrong about it
//! - [`families`]: random traces for tuning and, apart from those, for reporting

pub mod best;
pub mod families;
pub mod groups;
pub mod history;
pub mod peers;
pub mod question;
pub mod random;
pub mod report;
pub mod run;
pub mod scenarios;
pub mod suggest;
pub mod trace;

pub use random::Random;
pub use run::{FailFilter, Pick, Rule, Run, Switch, World, run, run_all};
pub use trace::{Change, Dead, Exit, Script, Trace, What};
