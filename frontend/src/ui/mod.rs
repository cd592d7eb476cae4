//! The page's vocabulary of elements. Knows neither the panel nor the screens.

pub mod button;
pub mod chip;
pub mod copy;
pub mod dialog;
pub mod errors;
pub mod field;
pub mod growing;
pub mod icon;
pub mod markup;
pub mod search;
pub mod state;
pub mod ticker;
pub mod toast;

pub use button::{Button, LinkButton, Look};
pub use chip::{Chip, Tone, dot};
pub use copy::{CopyBox, CopyButton};
pub use dialog::{Confirm, Dialog};
pub use errors::{Checked, FieldErrors, FormSummary};
pub use field::{Checkbox, Choice, SelectField, TextArea, TextField};
pub use icon::{Icon, icon};
pub use state::{Alert, Empty, Heading, Loading, Problem};
