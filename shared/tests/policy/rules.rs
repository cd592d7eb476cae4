//! Every rule of sing-box's groups and of dae's policies (see docs/policies.md): proved by a test, or a deviation that
//! is wanted and proved by a test, or the business of whoever opens sockets and files.

use crate::{dae, fallback, nested, priority, singbox, syntax};

enum Stand {
    Same(fn()),
    Deviation(&'static str, fn()),
    /// Not the rules': sockets, files and clocks belong to the agent.
    Elsewhere(&'static str),
}
use Stand::{Deviation, Elsewhere, Same};

const RULES: &[(&str, Stand)] = &[
    // sing-box selector
    (
        "members are resolved in list order, an unknown one is an error with its place",
        Same(singbox::missing_members_are_refused_with_their_place),
    ),
    ("an empty list is an error", Same(singbox::missing_members_are_refused_with_their_place)),
    ("a cycle is an error with its path", Same(nested::cycles_are_refused_with_their_path)),
    ("stored choice, else default, else first", Same(singbox::stored_then_default_then_first)),
    ("a stored choice that is no member is ignored and kept", Same(singbox::stored_then_default_then_first)),
    (
        "a wrong default hides behind a stored choice",
        Deviation("refused always", singbox::a_wrong_default_is_refused_also_behind_a_stored_choice),
    ),
    (
        "a member listed twice is accepted",
        Deviation("refused", singbox::missing_members_are_refused_with_their_place),
    ),
    ("duplicate names are refused", Same(singbox::missing_members_are_refused_with_their_place)),
    ("a group without a name never stores", Elsewhere("every group has a name here")),
    ("an unknown choice is refused and changes nothing", Same(singbox::an_unknown_choice_changes_nothing)),
    (
        "choosing the current member does nothing",
        Deviation(
            "it is stored; nothing is closed",
            singbox::choosing_the_current_one_is_stored_and_interrupts_nothing,
        ),
    ),
    (
        "a new choice is swapped, stored, then interrupts",
        Same(singbox::a_choice_is_taken_stored_and_interrupts_what_was_left),
    ),
    ("no way to clear a choice", Deviation("it can be cleared", singbox::a_choice_can_be_cleared)),
    ("networks mirror the chosen member", Same(singbox::a_selector_carries_what_its_choice_carries)),
    ("a failed dial changes nothing", Same(singbox::a_failed_dial_leaves_a_selector_alone)),
    ("before the start the first member counts", Same(singbox::stored_then_default_then_first)),
    ("cache file, its buckets and its corruption", Elsewhere("the agent's state file")),
    // sing-box urltest
    ("defaults: url, 3m, 50 ms, 30m", Same(syntax::defaults_are_those_of_the_sources)),
    ("tolerance 0 means 50", Deviation("0 is 0", singbox::zero_is_a_delay_and_a_tolerance)),
    (
        "interval above the idle timeout fails at the start",
        Deviation(
            "an error in the text; not written, the idle timeout follows",
            syntax::defaults_are_those_of_the_sources,
        ),
    ),
    ("unknown options are fatal", Same(syntax::errors_name_the_place_and_what_was_expected)),
    ("HEAD, any status, 15 s, TLS time", Elsewhere("the agent's HTTP test")),
    ("at most ten tests at once", Same(singbox::ten_tests_at_once)),
    ("each leaf once per round", Same(singbox::groups_with_other_urls_do_not_share_numbers)),
    (
        "only TCP is tested",
        Deviation("UDP follows its own results where there are any", singbox::tcp_and_udp_choose_apart),
    ),
    (
        "a second caller gets an empty result while a round runs",
        Deviation("what is under way is waited for", singbox::recent_results_are_not_repeated_unless_forced),
    ),
    (
        "the choice is made once, after the slowest",
        Deviation("a dead member is left at once", singbox::a_failed_test_costs_the_incumbency),
    ),
    ("only the last success counts, a failure removes it", Same(singbox::a_failed_test_costs_the_incumbency)),
    (
        "history is keyed by name only",
        Deviation("by target and leaf", singbox::groups_with_other_urls_do_not_share_numbers),
    ),
    (
        "the current one is the baseline while it has a result",
        Same(singbox::hysteresis_at_every_place_in_the_list),
    ),
    (
        "a rival must be faster by more than the tolerance",
        Same(singbox::hysteresis_at_every_place_in_the_list),
    ),
    (
        "the last that beat a running best wins",
        Deviation("the fastest wins", singbox::the_fastest_wins_not_the_last_that_beat_a_running_best),
    ),
    (
        "without results the first that carries the network",
        Same(singbox::without_results_the_first_that_carries_the_network),
    ),
    ("all failed keeps the choice", Same(singbox::all_failed_keeps_the_choice)),
    ("sums wrap at 16 bits", Deviation("they do not", singbox::sums_do_not_wrap)),
    ("0 ms is no value", Deviation("it is one", singbox::zero_is_a_delay_and_a_tolerance)),
    ("TCP and UDP choose apart", Same(singbox::tcp_and_udp_choose_apart)),
    ("a failed current member loses its incumbency", Same(singbox::a_failed_test_costs_the_incumbency)),
    (
        "healthy members are tested every second interval",
        Deviation("every interval", singbox::healthy_members_are_tested_every_interval),
    ),
    (
        "one round at the start, not forced, no ticker",
        Same(singbox::one_round_at_the_start_then_only_with_use),
    ),
    (
        "use wakes; old results are tested at once; idleness stops",
        Same(singbox::use_wakes_and_idleness_stops),
    ),
    ("a pause of the device suspends the ticker", Elsewhere("nodes do not sleep")),
    ("forced rounds ignore freshness", Same(singbox::recent_results_are_not_repeated_unless_forced)),
    (
        "a failed dial only removes the history; the choice stays",
        Deviation(
            "the next member at once, and a test",
            singbox::a_failed_dial_moves_on_and_tests_again_at_once,
        ),
    ),
    (
        "a nested member's failed dial removes nothing",
        Deviation("it counts for the leaf", nested::a_failed_dial_counts_for_the_leaf),
    ),
    ("groups resolve one level", Deviation("any depth", nested::any_depth_resolves_to_the_leaf)),
    (
        "a nested group without a choice is skipped",
        Deviation(
            "every group has a choice from the start",
            nested::a_new_leaf_inside_is_tested_without_waiting,
        ),
    ),
    ("a switch inside changes the view outside", Same(nested::a_switch_inside_is_seen_outside_at_once)),
    (
        "a switch closes everything of the group",
        Deviation(
            "only what is on the member left, per network",
            singbox::a_choice_is_taken_stored_and_interrupts_what_was_left,
        ),
    ),
    (
        "the first choice interrupts nothing",
        Same(singbox::the_first_choice_interrupts_nothing_and_switches_do),
    ),
    ("internal connections are always closed", Elsewhere("a relay has none")),
    ("the examples", Same(singbox::the_examples)),
    // dae
    ("random picks among the living", Same(fallback::random_fallback_uses_all_that_live)),
    (
        "fixed(n) is always n, dead or alive, without checks; out of range is an error",
        Same(dae::fixed_is_fixed),
    ),
    ("min, min_avg10, min_moving_avg by their latency", Same(dae::each_min_looks_at_its_own_latency)),
    ("the mean is over at most ten", Same(dae::the_mean_is_over_ten_at_most_and_over_fewer_from_the_first)),
    ("failures are no samples", Same(dae::failures_are_not_latencies)),
    (
        "the moving average starts at 0",
        Deviation("at the first sample", dae::averages_start_at_the_first_sample),
    ),
    ("a group with one member ignores death", Same(dae::one_member_is_used_dead_or_alive)),
    ("one failed check kills, one success revives", Same(dae::one_failure_kills_and_one_success_revives)),
    (
        "DNS 3, TCP traffic 10, UDP traffic 50 failures",
        Deviation("one number per group: `fall`, default 1", dae::fall_and_rise_can_be_set),
    ),
    (
        "three failures on one address kill all domains",
        Deviation("each network has its own evidence", dae::six_domains_are_kept_apart),
    ),
    ("health domains are kept apart", Same(dae::six_domains_are_kept_apart)),
    ("data-UDP falls back to DNS-UDP and TCP", Same(dae::untested_udp_follows_tcp_of_its_family)),
    (
        "a member without a family is alive there",
        Deviation("neither alive nor dead", dae::a_lacking_family_is_neither_alive_nor_dead),
    ),
    (
        "nobody alive is an error, with rate-limited checks of all",
        Deviation(
            "the choice stays; the checks are the same",
            dae::nobody_alive_keeps_the_choice_and_tests_all_with_traffic,
        ),
    ),
    ("check_interval, targeted checks beside it", Same(dae::checks_every_interval)),
    (
        "targeted checks are limited to one in 2 s",
        Same(singbox::a_failed_dial_moves_on_and_tests_again_at_once),
    ),
    ("spread of checks, pools, HTTP and DNS queries", Elsewhere("the agent's prober")),
    (
        "a penalty for members that died often",
        Deviation(
            "`rise` and `return_delay` hold flapping members",
            fallback::rise_and_return_delay_hold_a_flapping_one,
        ),
    ),
    (
        "add_latency is not applied where nothing is measured",
        Deviation("applied wherever latencies are compared", dae::add_latency_counts_everywhere),
    ),
    (
        "a best faster than the tolerance has no hysteresis",
        Deviation("it has", dae::tolerance_holds_for_fast_members_too),
    ),
    ("a rival that is better by exactly the tolerance wins", Same(dae::tolerance_holds_for_fast_members_too)),
    // fixed_fallback
    (
        "one to four values, defaults 3s, 3, min_moving_avg",
        Same(syntax::fixed_fallback_as_the_source_writes_it),
    ),
    ("timeouts below 2s are raised with a warning", Same(syntax::a_short_timeout_is_raised_and_said_so)),
    (
        "PRIMARY: a check marks it dead, no traffic needed",
        Same(fallback::new_traffic_leaves_at_once_without_traffic),
    ),
    ("PRIMARY: traffic finds it dead", Same(fallback::traffic_finds_the_death)),
    ("the probe at once is retry 1; every timeout; at most `retries`", Same(fallback::probe_times)),
    ("retries 0: periodic checks only", Same(fallback::no_retries)),
    ("RETRYING: alive at a tick or a pick returns", Same(fallback::it_returns_in_the_moment_it_lives)),
    (
        "EXHAUSTED: stays until a check sees it alive",
        Same(fallback::a_new_death_starts_anew_after_exhaustion),
    ),
    ("traffic never counts as a retry", Same(fallback::traffic_is_no_retry)),
    ("the fallback policy among the living", Same(fallback::the_fallback_policy_is_the_one_written)),
    ("nobody living at all", Same(fallback::nobody_lives)),
    ("one state per group", Deviation("one per network", fallback::one_state_per_network)),
    (
        "exhausted, the runner ends",
        Deviation("it goes on with growing waits up to the interval", fallback::probing_goes_on),
    ),
    (
        "returns on the first sign of life",
        Deviation(
            "that is the default; `rise` and `return_delay` ask for more",
            fallback::rise_and_return_delay_hold_a_flapping_one,
        ),
    ),
    ("probes start after up to 2 s", Deviation("to the millisecond", fallback::probe_times)),
    ("the runner ends with its group", Elsewhere("the state is a value; who drops it has no runner")),
    ("WARN on dead, INFO on alive", Elsewhere("the agent logs `Switched` with its reason")),
    // dae-next
    (
        "priorities in closed bands of latency, the first that fits",
        Same(priority::bands_are_read_and_the_first_that_fits_counts),
    ),
    (
        "alive, then priority, then latency; up at once, down never",
        Same(priority::the_higher_priority_comes_first_whatever_the_latencies),
    ),
    (
        "edges are hard",
        Deviation(
            "a better band is left only well behind its edge",
            priority::a_latency_that_wanders_about_an_edge_does_not_flap,
        ),
    ),
    (
        "fixed_fallback has none",
        Deviation("its fallback has", priority::a_fixed_one_is_not_bound_by_priorities_but_its_fallback_is),
    ),
];

#[test]
fn every_rule_holds_or_differs_on_purpose() {
    for (rule, stand) in RULES {
        match stand {
            Same(test) => test(),
            Deviation(ours, test) => {
                assert!(!ours.is_empty(), "{rule}");
                test();
            }
            Elsewhere(whose) => assert!(!whose.is_empty(), "{rule}"),
        }
    }
}

#[test]
fn more() {
    nested::a_group_lives_while_a_member_lives();
}
