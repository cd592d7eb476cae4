//! Which behaviours of GOST's own tests are held here, by which test; and which are not, and why.
//!
//! The numbers count the behaviours as they were collected from GOST's tests of hops, probes, selectors, chains and its
//! failover suite; the texts are ours.

use Held::{By, No, Otherwise};
use std::path::Path;

enum Held {
    /// By these tests: file and function.
    By(&'static [(&'static str, &'static str)]),
    /// Ours behaves differently on purpose; the test shows how.
    Otherwise(&'static str, &'static [(&'static str, &'static str)]),
    /// There is nothing here that it could be asked of.
    No(&'static str),
}

const PROBES: &str = "tests/dataplane/probes.rs";
const EXAMPLES: &str = "tests/dataplane/examples.rs";
const PARALLEL: &str = "tests/dataplane/parallel.rs";
const FAILOVER: &str = "tests/dataplane/failover.rs";
const REFUSE: &str = "tests/dataplane/refuse.rs";
const CARRY: &str = "tests/dataplane/carry.rs";
const CHAINS: &str = "tests/dataplane/chain_groups.rs";
const SELECT: &str = "src/chain/select_tests.rs";
const GROUP: &str = "src/chain/group_tests.rs";
const MARKS: &str = "src/chain/marks.rs";
const MEASURED: &str = "src/chain/measured.rs";
const COMMAND: &str = "src/chain/probe/command.rs";
const HTTP: &str = "src/chain/probe/http.rs";
const PROBE: &str = "src/chain/probe/mod.rs";
const POLICY: &str = "src/chain/policy.rs";
const CHAIN: &str = "src/chain/chain_tests.rs";
const WALK: &str = "src/chain/walk.rs";

const NO_RULES: &str = "bypasses, matchers, filters and priorities of nodes are refused as unknown keys";
const TYPES: &str = "the type system says so";

#[rustfmt::skip]
const TABLE: &[(u16, u16, &str, Held)] = &[
    (1, 2, "two live nodes, probed: both fine and picked", By(&[(PROBES, "a_command_decides_who_is_used"), (EXAMPLES, "three_kinds_of_probes_beside_each_other")])),
    (3, 4, "one goes: marked, never picked", By(&[(PROBES, "a_node_is_found_dead_and_found_back"), (PROBES, "a_dead_node_is_left_out_before_any_client_comes")])),
    (5, 6, "it comes back: unmarked and picked", By(&[(PROBES, "a_node_is_found_dead_and_found_back"), (EXAMPLES, "nodes_that_go_and_come_back_lose_no_request")])),
    (7, 8, "the expected status or another", By(&[(PROBES, "a_page_is_asked_for_through_the_node")])),
    (9, 9, "defaults of a page probe", By(&[(PROBE, "defaults")])),
    (10, 10, "a connection that is closed", By(&[(HTTP, "an_endless_line_and_a_closed_connection_end")])),
    (11, 12, "the exit status of a command", Otherwise("without a time limit it gets the default one", &[(COMMAND, "the_exit_status_is_the_verdict"), (PROBE, "defaults")])),
    (13, 13, "a command that takes too long", By(&[(COMMAND, "a_command_that_takes_too_long_is_killed_with_its_children")])),
    (14, 15, "an unknown program, a pipeline", By(&[(COMMAND, "the_exit_status_is_the_verdict")])),
    (16, 16, "a probe follows its listener", By(&[(PROBES, "a_node_is_found_dead_and_found_back")])),
    (17, 17, "no probe after the node's end", By(&[(PROBES, "a_probe_ends_with_its_node")])),
    (18, 18, "no probe or an empty one", Otherwise("an empty one is refused", &[(PROBE, "what_makes_no_sense_is_refused"), (PROBES, "a_probe_lives_as_long_as_its_node")])),
    (19, 19, "a command needs no transport", Otherwise("a node without an address is refused", &[(PROBES, "a_command_decides_who_is_used"), (CHAIN, "errors_name_the_place")])),
    (20, 20, "no command", Otherwise("is refused", &[(PROBE, "what_makes_no_sense_is_refused")])),
    (21, 21, "a page that turns bad", By(&[(PROBES, "a_page_is_asked_for_through_the_node")])),
    (22, 24, "fail filter: nobody, one, two clear ones", By(&[(SELECT, "nobody_and_a_single_one"), (SELECT, "filters_before_the_strategy"), (GROUP, "rules_fall_back_from_member_to_selector_to_default")])),
    (25, 25, "fail filter: clear and marked", By(&[(SELECT, "filters_before_the_strategy")])),
    (26, 26, "fail filter: after the time", Otherwise("one trial, not everybody", &[(MARKS, "after_the_time_out_exactly_one_connection_tries"), (GROUP, "an_expired_mark_admits_one_connection_until_it_is_decided")])),
    (27, 27, "fail filter: the node's own rule", By(&[(GROUP, "rules_fall_back_from_member_to_selector_to_default")])),
    (28, 28, "fail filter: something without a marker", No(TYPES)),
    (29, 29, "fail filter: all marked", Otherwise("the last resort instead of nobody", &[(SELECT, "filters_before_the_strategy"), (FAILOVER, "when_all_are_marked_they_are_tried_all_the_same_and_recover")])),
    (30, 31, "fail filter: zeros mean the defaults", By(&[(GROUP, "zeros_mean_the_defaults")])),
    (32, 37, "backup filter", By(&[(SELECT, "nobody_and_a_single_one"), (SELECT, "filters_before_the_strategy")])),
    (38, 38, "the defaults", By(&[(GROUP, "zeros_mean_the_defaults")])),
    (39, 39, "metadata are read", By(&[("src/metadata.rs", "values_in_the_shapes_that_peers_send")])),
    (40, 40, "when a node counts as failed", By(&[(MARKS, "one_failure_leaves_out_for_exactly_the_time"), (MARKS, "failures_add_up_only_inside_the_window"), (GROUP, "rules_fall_back_from_member_to_selector_to_default")])),
    (41, 45, "lowest latency: samples", By(&[(SELECT, "lowest_latency"), (MEASURED, "the_last_sample_and_the_average")])),
    (46, 46, "lowest latency: nodes", By(&[(PROBES, "the_fastest_by_its_probe_is_used")])),
    (47, 50, "latency filter: samples", Otherwise("where it would leave nobody it does not apply", &[(SELECT, "the_latency_filter_after_the_others"), (SELECT, "nobody_and_a_single_one")])),
    (51, 51, "latency filter: nodes", By(&[(PROBES, "who_is_too_slow_waits_until_nobody_else_is_left"), (SELECT, "the_latency_filter_after_the_others")])),
    (52, 52, "round", By(&[(SELECT, "nobody_and_a_single_one"), (SELECT, "round_cycles_over_the_usable"), (GROUP, "many_at_once_get_turns_of_their_own")])),
    (53, 53, "fifo", By(&[(SELECT, "nobody_and_a_single_one"), (SELECT, "fifo_is_always_the_first")])),
    (54, 54, "rand", By(&[(SELECT, "nobody_and_a_single_one"), (SELECT, "rand_follows_the_weights")])),
    (55, 55, "hash", Otherwise("without a name the address counts, so nothing is left to chance", &[(SELECT, "hash_is_the_checksum_modulo_the_usable"), ("src/chain/hash.rs", "gosts_checksums"), (GROUP, "a_named_client_is_the_same_from_everywhere")])),
    (56, 56, "every strategy is one", By(&[(POLICY, "every_name_and_alias")])),
    (57, 60, "weights", By(&[(SELECT, "rand_follows_the_weights"), (SELECT, "nobody_and_a_single_one")])),
    (61, 61, "all weights zero", Otherwise("zero counts as one", &[(SELECT, "rand_follows_the_weights")])),
    (62, 62, "a reset list", No("there is none: a changed group is a new one")),
    (63, 63, "weights of three", By(&[(SELECT, "rand_follows_the_weights")])),
    (64, 65, "for strings and structs", No(TYPES)),
    (66, 66, "something is constructed", No(TYPES)),
    (67, 70, "filters run before the strategy", By(&[(SELECT, "nobody_and_a_single_one"), (SELECT, "filters_before_the_strategy")])),
    (71, 73, "parallel: nobody, one, three", By(&[(SELECT, "nobody_and_a_single_one"), (SELECT, "parallel_takes_a_tier_at_a_time")])),
    (74, 74, "parallel among other things than nodes", Otherwise("targets may race, chains may not", &[(PARALLEL, "targets_may_race"), (CHAINS, "what_is_wrong_with_a_group_is_named")])),
    (75, 75, "parallel without nodes", By(&[(REFUSE, "with_an_empty_chain_or_an_empty_hop")])),
    (76, 81, "parallel: insides of its made-up node", No("no node is made up: whole ways race")),
    (82, 84, "parallel: the winner carries on", Otherwise("won is won when the target is reached, not when the node is", &[(PARALLEL, "up_means_that_the_node_has_answered_for_the_target"), (PARALLEL, "a_silent_node_delays_nobody_and_is_let_go")])),
    (85, 85, "a hop without nodes, with one", Otherwise("without nodes, clients are refused", &[(REFUSE, "with_an_empty_chain_or_an_empty_hop"), (WALK, "one_hop_tries_each_node_once")])),
    (86, 89, "bypasses, matchers, priorities", Otherwise(NO_RULES, &[(CHAIN, "rules_that_are_not_known_are_refused")])),
    (90, 90, "the selector decides among equals", By(&[(SELECT, "round_cycles_over_the_usable")])),
    (91, 91, "a marked node of high priority", Otherwise(NO_RULES, &[(CHAIN, "rules_that_are_not_known_are_refused")])),
    (92, 93, "last resort", By(&[(SELECT, "filters_before_the_strategy"), (FAILOVER, "when_all_are_marked_they_are_tried_all_the_same_and_recover")])),
    (94, 94, "last resort and matchers", Otherwise(NO_RULES, &[(CHAIN, "rules_that_are_not_known_are_refused")])),
    (95, 95, "entries that are null", Otherwise("are refused", &[(CHAIN, "rules_that_are_not_known_are_refused")])),
    (96, 96, "a primary before a backup, whatever the priority", By(&[(SELECT, "a_filtered_one_is_never_picked_while_another_is_left")])),
    (97, 97, "a filter without a host", Otherwise(NO_RULES, &[(CHAIN, "rules_that_are_not_known_are_refused")])),
    (98, 99, "nodes from files, redis and the web", Otherwise("such hops are refused as unknown keys", &[(CHAIN, "rules_that_are_not_known_are_refused")])),
    (100, 100, "no chain, no hops", Otherwise("clients are refused", &[(REFUSE, "without_a_chain"), (REFUSE, "with_an_empty_chain_or_an_empty_hop")])),
    (101, 101, "two hops in order", By(&[(CARRY, "two_hops_in_one_chain")])),
    (102, 102, "a multiplexing node", No("a matter of transports")),
    (103, 104, "a hop that yields nobody", Otherwise("clients are refused, nobody goes on from an earlier hop", &[(REFUSE, "with_an_empty_chain_or_an_empty_hop"), (WALK, "nothing_in_it_means_no_path")])),
    (105, 105, "errors of dial, handshake and connect", By(&[(FAILOVER, "a_dead_exit_costs_no_client_anything"), (FAILOVER, "a_mute_exit_costs_one_deadline_once"), (FAILOVER, "a_wrong_password_leads_to_the_next")])),
    (106, 106, "a failure at the second hop", By(&[(CARRY, "a_failure_at_the_second_hop_is_blamed_there")])),
    (107, 107, "marks of a chain", By(&[(CHAINS, "a_chain_that_fails_is_left_out_and_the_next_is_used")])),
    (108, 108, "time for everything: 15 s", By(&[("tests/dataplane/coverage.rs", "the_time_for_everything_is_gosts")])),
    (109, 109, "matchers of chains", Otherwise("refused as an unknown key", &[("../shared/src/gost/selection.rs", "an_entry_of_a_chain_group_is_a_name_or_an_object")])),
    (110, 110, "probes of chains end, and mark", By(&[(CHAINS, "a_dead_chain_is_found_by_its_probe"), (CHAINS, "a_probe_of_a_chain_ends_with_its_service")])),
    (111, 112, "one dead node, round and fifo", By(&[(EXAMPLES, "no_request_is_lost_while_a_dead_node_is_found_by_clients")])),
    (113, 113, "a dead primary and a backup", By(&[(FAILOVER, "a_backup_is_used_only_when_the_others_are_left_out")])),
    (114, 114, "parallel with a dead node", By(&[(EXAMPLES, "no_request_is_lost_while_a_dead_node_is_found_by_clients"), (PARALLEL, "who_fails_is_marked_and_not_raced_again")])),
    (115, 115, "a connection probe and a dead node", By(&[(EXAMPLES, "a_proxy_with_a_dead_node_serves_every_request")])),
    (116, 116, "lowest latency with two live nodes", By(&[(EXAMPLES, "the_faster_of_two_is_used")])),
    (117, 117, "a command that fails", By(&[(PROBES, "a_command_decides_who_is_used")])),
    (118, 118, "nodes go and come back", By(&[(EXAMPLES, "nodes_that_go_and_come_back_lose_no_request")])),
    (119, 119, "chains by the host", Otherwise("matchers are refused as an unknown key", &[("../shared/src/gost/selection.rs", "an_entry_of_a_chain_group_is_a_name_or_an_object")])),
    (120, 120, "a dead chain, probed", By(&[(CHAINS, "a_dead_chain_is_found_by_its_probe"), (CHAINS, "a_chain_that_fails_is_left_out_and_the_next_is_used")])),
];

#[test]
fn every_behaviour_has_its_test_or_its_reason() {
    let mut next = 1;
    for (first, last, what, held) in TABLE {
        assert_eq!((*first, first <= last), (next, true), "{what}");
        next = last + 1;
        let tests = match held {
            By(tests) => tests,
            Otherwise(reason, tests) => {
                assert!(!reason.is_empty());
                tests
            }
            No(reason) => {
                assert!(!reason.is_empty());
                continue;
            }
        };
        assert!(!tests.is_empty(), "{what}");
        for (file, function) in *tests {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(
                text.contains(&format!("fn {function}(")),
                "{first}, {what}: there is no {function} in {file}"
            );
        }
    }
    assert_eq!(next, 121);
}

#[test]
fn the_time_for_everything_is_gosts() {
    assert_eq!(agent::runtime::Deadlines::default().dial, std::time::Duration::from_secs(15));
}
