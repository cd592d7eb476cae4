//! The settings of measuring and deciding.

use super::{Result, announce, changes, check_version, note, valid};
use crate::state::AppState;
use shared::api::{SettingsAnswer, SettingsInput, User};

/// The settings in force.
pub async fn get(state: &AppState) -> Result<SettingsAnswer> {
    let (version, settings) = state.db.settings().await?;
    Ok(SettingsAnswer { version, settings })
}

/// Changes the given fields.
pub async fn update(state: &AppState, user: &User, input: SettingsInput) -> Result<SettingsAnswer> {
    let mut tx = state.db.write().await?;
    let (stored, old) = tx.settings().await?;
    if input.version.is_some() {
        check_version("the settings", "version", input.version, stored)?;
    }
    let new = input.over(old.clone());
    valid(new.validate())?;
    if new == old {
        return Ok(SettingsAnswer { version: stored, settings: old });
    }
    let version = tx.update_settings(&new).await?;
    note(&mut tx, state, user, "settings.update", "settings".to_owned(), changes(&old, &new)).await?;
    tx.commit().await?;
    announce(state, "settings");
    Ok(SettingsAnswer { version, settings: new })
}
