//! Passwords: argon2id, computed off the async threads and a few at a time.

use crate::clock::random_bytes;
use crate::error::AppError;
use anyhow::anyhow;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Hashes computed at the same time. Each takes 19 MiB and a core; more would let logins starve the panel.
const PARALLEL: usize = 2;

/// Computes and checks password hashes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Passwords {
    slots: Arc<Semaphore>,
    decoy: Arc<str>,
}

impl Passwords {
    /// Ready to check.
    pub fn new() -> Result<Self, AppError> {
        Ok(Self { slots: Arc::new(Semaphore::new(PARALLEL)), decoy: hash_now("decoy")?.into() })
    }

    /// The PHC string of a password.
    pub async fn hash(&self, password: &str) -> Result<String, AppError> {
        let password = password.to_owned();
        self.off_thread(move || hash_now(&password)).await?
    }

    /// Whether the password fits. Without a hash (an unknown user) it takes the same time and says no.
    pub async fn verify(&self, password: &str, hash: Option<&str>) -> Result<bool, AppError> {
        let password = password.to_owned();
        let known = hash.is_some();
        let hash = hash.map_or_else(|| self.decoy.to_string(), str::to_owned);
        self.off_thread(move || {
            let parsed =
                PasswordHash::new(&hash).map_err(|e| AppError::Internal(anyhow!("stored hash: {e}")))?;
            let fits = hasher()?.verify_password(password.as_bytes(), &parsed).is_ok();
            Ok(fits && known)
        })
        .await?
    }

    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AppError> {
        let slot = self.slots.clone().acquire_owned().await.map_err(|e| AppError::Internal(e.into()))?;
        let work = move || {
            let _slot = slot;
            work()
        };
        tokio::task::spawn_blocking(work).await.map_err(|e| AppError::Internal(e.into()))
    }
}

/// OWASP's second choice of parameters (19 MiB, 2 passes, 1 lane), which is also the crate's default.
fn hasher() -> Result<Argon2<'static>, AppError> {
    let params = Params::new(19 * 1024, 2, 1, None).map_err(|e| AppError::Internal(anyhow!("{e}")))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// The PHC string of a password, on this thread.
pub fn hash_now(password: &str) -> Result<String, AppError> {
    let internal = |e| AppError::Internal(anyhow!("hashing a password: {e}"));
    let salt = SaltString::encode_b64(&random_bytes::<16>()).map_err(internal)?;
    Ok(hasher()?.hash_password(password.as_bytes(), &salt).map_err(internal)?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_right_password_of_a_known_user_fits() {
        let passwords = Passwords::new().unwrap();
        let hash = passwords.hash("correct horse").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(passwords.verify("correct horse", Some(&hash)).await.unwrap());
        assert!(!passwords.verify("wrong", Some(&hash)).await.unwrap());
        assert!(!passwords.verify("decoy", None).await.unwrap());
        assert!(passwords.verify("x", Some("nonsense")).await.is_err());
    }
}
