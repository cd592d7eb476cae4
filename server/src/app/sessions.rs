//! Logging in and out.

use super::{Result, note, object, valid};
use crate::auth::CurrentUser;
use crate::auth::token;
use crate::error::AppError;
use crate::state::AppState;
use shared::api::{LoginAnswer, LoginRequest, MAX_PASSWORD_BYTES, PasswordChange, password_problem};
use shared::field::FieldError;

/// Logs in from `address`, which is a key for throttling.
pub async fn login(state: &AppState, request: LoginRequest, address: &str) -> Result<LoginAnswer> {
    let mut errors = Vec::new();
    for (field, text) in [("username", &request.username), ("password", &request.password)] {
        if text.is_empty() {
            errors.push(FieldError::new(field, "empty", format!("give a {field}")));
        } else if text.len() > MAX_PASSWORD_BYTES {
            let message = format!("at most {MAX_PASSWORD_BYTES} bytes are possible");
            errors.push(FieldError::new(field, "too_long", message).with("max", MAX_PASSWORD_BYTES));
        }
    }
    valid(errors)?;

    state
        .logins
        .take(&request.username, address, state.clock.mono_ms())
        .map_err(|wait_ms| AppError::Throttled { retry_after_s: wait_ms.div_ceil(1000).max(1) })?;
    let stored = state.db.read().await?.user_by_name(&request.username).await?;
    let hash = stored.as_ref().map(|stored| stored.password_hash.as_str());
    let fits = state.passwords.verify(&request.password, hash).await?;
    let Some(stored) = stored.filter(|_| fits) else {
        tracing::warn!(client.address = address, "a login failed");
        return Err(AppError::WrongPassword);
    };
    state.logins.succeeded(&request.username, address);

    let new = token::new_token();
    let now = state.clock.wall_ms();
    let expires_at = now + token::SESSION_MS;
    let mut tx = state.db.write().await?;
    // While this password was being checked somebody may have changed it; a session must not outlive that.
    let still = tx.user_by_name(&request.username).await?;
    if still.is_none_or(|still| still.password_hash != stored.password_hash) {
        return Err(AppError::WrongPassword);
    }
    tx.insert_session(&token::hash(&new), stored.user.id, now, expires_at).await?;
    tx.commit().await?;
    Ok(LoginAnswer { token: new, expires_at, user: stored.user })
}

/// Ends a session.
pub async fn logout(state: &AppState, current: &CurrentUser) -> Result<()> {
    let mut tx = state.db.write().await?;
    tx.delete_session(&current.token_hash).await?;
    tx.commit().await?;
    state.recall.tell();
    Ok(())
}

/// Changes the password of whoever is logged in and ends his other sessions.
pub async fn change_password(state: &AppState, current: &CurrentUser, change: PasswordChange) -> Result<()> {
    let new = &change.new_password;
    let mut errors: Vec<_> = password_problem("newPassword", new).into_iter().collect();
    if change.current_password.len() > MAX_PASSWORD_BYTES {
        errors.push(FieldError::new("currentPassword", "wrong_password", "this is not the current password"));
    }
    valid(errors)?;

    // A stolen session must not be a way to guess the password.
    let username = &current.user.username;
    let key = format!("user {}", current.user.id);
    state
        .logins
        .take(username, &key, state.clock.mono_ms())
        .map_err(|wait_ms| AppError::Throttled { retry_after_s: wait_ms.div_ceil(1000).max(1) })?;
    let stored = state.db.read().await?.user_by_name(username).await?;
    let stored = stored.ok_or(AppError::Unauthenticated)?;
    if !state.passwords.verify(&change.current_password, Some(&stored.password_hash)).await? {
        return Err(AppError::field("currentPassword", "wrong_password", "this is not the current password"));
    }
    state.logins.succeeded(username, &key);

    let hash = state.passwords.hash(new).await?;
    let mut tx = state.db.write().await?;
    tx.set_password(stored.user.id, &hash, Some(&current.token_hash)).await?;
    let who = object(username, stored.user.id);
    note(&mut tx, state, &current.user, "user.change_password", who, String::new()).await?;
    tx.commit().await?;
    state.recall.tell();
    Ok(())
}
