//! What each service has carried, and how much of it was told.

use crate::relay::traffic::Traffic;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Services in one report; the others wait for the next.
const MOST_ENTRIES: usize = 1000;
/// The peer's agents keep no accounts of services with such names: what these carry is counted where it comes in.
const WITHOUT_ACCOUNT: &str = "_tls";

/// One service of a report, as the peer's panel reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Entry {
    /// The service.
    n: String,
    /// Payload bytes from clients to targets.
    u: u64,
    /// Payload bytes from targets to clients.
    d: u64,
    #[serde(skip)]
    account: usize,
}

#[derive(Debug)]
struct Account {
    service: String,
    traffic: Arc<Traffic>,
    told: (u64, u64),
}

impl Account {
    fn due(&self) -> (u64, u64) {
        let (up, down) = self.told;
        (self.traffic.up().saturating_sub(up), self.traffic.down().saturating_sub(down))
    }
}

/// The accounts of all services, also of those that are gone and whose connections still run.
#[derive(Debug, Default)]
pub(super) struct Accounts(Vec<Account>);

impl Accounts {
    /// Opens accounts for services that have none, and closes those of services that are gone with all they carried told.
    pub(super) fn open(&mut self, services: Vec<(String, Arc<Traffic>)>) {
        let known: BTreeSet<_> = self.0.iter().map(|account| Arc::as_ptr(&account.traffic)).collect();
        for (service, traffic) in services {
            if !known.contains(&Arc::as_ptr(&traffic)) && !service.ends_with(WITHOUT_ACCOUNT) {
                self.0.push(Account { service, traffic, told: (0, 0) });
            }
        }
        // Nobody else holds it: neither the service nor a connection.
        self.0.retain(|account| Arc::strong_count(&account.traffic) > 1 || account.due() != (0, 0));
    }

    /// What is to be told, which counts as told from now on.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (i, account) in self.0.iter_mut().enumerate() {
            let (u, d) = account.due();
            if (u, d) != (0, 0) && entries.len() < MOST_ENTRIES {
                account.told = (account.told.0 + u, account.told.1 + d);
                entries.push(Entry { n: account.service.clone(), u, d, account: i });
            }
        }
        entries
    }

    /// What was taken last was not told after all.
    pub(super) fn give_back(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Some(account) = self.0.get_mut(entry.account) {
                account.told = (account.told.0 - entry.u, account.told.1 - entry.d);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(entries: &[Entry]) -> Vec<(&str, u64, u64)> {
        entries.iter().map(|entry| (entry.n.as_str(), entry.u, entry.d)).collect()
    }

    #[test]
    fn every_byte_is_told_once() {
        let (a, b) = (Arc::new(Traffic::default()), Arc::new(Traffic::default()));
        let services = || vec![("1_1_0_tcp".to_owned(), a.clone()), ("1_1_0_udp".to_owned(), b.clone())];
        let mut accounts = Accounts::default();
        accounts.open(services());
        assert_eq!(accounts.take(), []);
        a.add_up(5);
        a.add_down(7);
        let first = accounts.take();
        assert_eq!(told(&first), [("1_1_0_tcp", 5, 7)]);
        assert_eq!(accounts.take(), []);
        // It did not arrive, and more came meanwhile.
        b.add_down(1);
        a.add_up(10);
        accounts.give_back(&first);
        accounts.open(services());
        assert_eq!(told(&accounts.take()), [("1_1_0_tcp", 15, 7), ("1_1_0_udp", 0, 1)]);
        assert_eq!(accounts.take(), []);
    }

    #[test]
    fn a_service_that_is_gone_is_told_to_its_end() {
        let traffic = Arc::new(Traffic::default());
        let mut accounts = Accounts::default();
        accounts.open(vec![("1_1_0_tcp".to_owned(), traffic.clone())]);
        // The service is gone; a connection of it holds the counter.
        accounts.open(Vec::new());
        traffic.add_up(3);
        assert_eq!(told(&accounts.take()), [("1_1_0_tcp", 3, 0)]);
        traffic.add_up(4);
        drop(traffic);
        accounts.open(Vec::new());
        assert_eq!(told(&accounts.take()), [("1_1_0_tcp", 4, 0)]);
        accounts.open(Vec::new());
        assert!(accounts.0.is_empty());
    }

    #[test]
    fn a_new_service_of_the_same_name_has_its_own_account() {
        let (old, new) = (Arc::new(Traffic::default()), Arc::new(Traffic::default()));
        let mut accounts = Accounts::default();
        accounts.open(vec![("1_1_0_tcp".to_owned(), old.clone())]);
        old.add_up(100);
        new.add_up(1);
        accounts.open(vec![("1_1_0_tcp".to_owned(), new.clone())]);
        assert_eq!(told(&accounts.take()), [("1_1_0_tcp", 100, 0), ("1_1_0_tcp", 1, 0)]);
    }

    #[test]
    fn some_services_have_no_account_and_a_report_is_bounded() {
        let mut accounts = Accounts::default();
        let traffics: Vec<_> = (0..=MOST_ENTRIES + 1).map(|_| Arc::new(Traffic::default())).collect();
        let name = |i: usize| if i == 0 { "7_tls".to_owned() } else { format!("{i}_1_0_tcp") };
        accounts.open(traffics.iter().enumerate().map(|(i, t)| (name(i), t.clone())).collect());
        traffics.iter().for_each(|traffic| traffic.add_up(1));
        assert_eq!(
            (accounts.take().len(), accounts.take().len(), accounts.take().len()),
            (MOST_ENTRIES, 1, 0)
        );
    }
}
