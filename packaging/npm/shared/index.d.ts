/** The decisions of ExitPilot. Every function throws an {@link ExitPilotError} for arguments it cannot take. */

/** What is thrown: what is wrong, and where. */
export interface ExitPilotError extends Error {
  /** Stable, for translations: `invalid_type`, `missing_field`, `out_of_range`, `strategy_syntax`, … */
  code: string;
  /** Path from the argument's name on, `tunnel.exit.nodes[0].port`; empty: no field is to blame. */
  field: string;
  /** The values in the message, by name. */
  params: Record<string, string>;
}

/**
 * Loads the module. In a browser it has to be waited for before anything else is called; in Node.js everything is there.
 * @param source where the module is, if not beside the script: an address, its answer, its bytes, or the compiled module
 */
export default function init(
  source?: string | object,
): Promise<void>;

/** A text in every language. */
export interface Said {
  'zh-CN': string;
  en: string;
}

/** A strategy for a list to choose from. */
export interface Strategy {
  /** As it is stored and sent, with options in parentheses where it has some. */
  strategy: string;
  /** This version knows it. */
  known: boolean;
  /** Groups that may have it. */
  places: Array<'hop' | 'exit' | 'targets'>;
  /** What an agent has to report to be able to carry it out; null: nobody knows what it is. */
  capability: string | null;
  /** What it is called. */
  label: Said;
  /** One sentence on when to use it. */
  when: Said;
}

/** Every strategy, by an example of its text. */
export function strategies(): Strategy[];
/** One strategy, known or not, by its text. */
export function describeStrategy(strategy: string): Strategy;
/** Every protocol, as it is stored and sent. */
export function protocols(): Protocol[];

/** A policy that was read. */
export interface Policy {
  /** Its name without options. */
  name: string;
  /** Complete and canonical: every option is written. */
  policy: string;
  /** It is decided by tests or by a person, ahead of connections. */
  decidedAhead: boolean;
  /** What was changed, in words for whoever wrote it. */
  warnings: string[];
}

/**
 * Reads a policy such as `urltest(tolerance=20ms)`. The error's `params.at` says at which character (from 1) something
 * else was expected, `params.expected` what.
 */
export function parsePolicy(policy: string): Policy;

/** The transport between two neighbouring groups. */
export type Protocol = 'tls' | 'wss' | 'tcp' | 'ws' | 'mtls' | 'mwss' | 'mtcp';

/** A tunnel as the panel takes it. */
export interface Tunnel {
  /** Unique, 2 to 50 characters. */
  name: string;
  /** What it does at its entry; default `tunnel`. */
  type?: 'tunnel' | 'port';
  /** Default true. */
  enabled?: boolean;
  /** Which address family neighbouring groups use; default `auto`. */
  ipPreference?: 'auto' | 'v4' | 'v6';
  /** Where users connect. */
  entry: { nodes: Array<{ nodeId: number }> };
  /** In between, in order. */
  hops?: Group[];
  /** Where the traffic leaves; absent for `port`. */
  exit?: Group | null;
  /** The version that was edited. */
  version?: number | null;
}

/** A middle hop or the exits. */
export interface Group {
  /** A strategy's text; default `round`. */
  strategy?: string;
  /** Default `tls`. Others than those of {@link Protocol} are named by the validation. */
  protocol?: Protocol | (string & {});
  /** Failures after which a node is left out; 1 to 100, default 3. */
  maxFails?: number;
  /** For how long it is left out, in milliseconds; 1 to 3,600,000, default 30,000. */
  failTimeoutMs?: number;
  /** In order: the priority of `fifo`, the saved order of `best`. */
  nodes: GroupNode[];
}

/** A node of a hop or of the exits. */
export interface GroupNode {
  nodeId: number;
  /** Its relay port; absent: chosen once and kept. */
  port?: number | null;
  /** Address at which the group before dials it. */
  connectIp?: string | null;
}

/** What is known of the panel that the tunnel is for. */
export interface World {
  nodes: WorldNode[];
  /** Names of the other tunnels. */
  tunnelNames?: string[];
}

/** A node of the panel. */
export interface WorldNode {
  id: number;
  /** For messages. */
  name?: string;
  /** Ports that it may use; default all. */
  portRange?: string;
  /** What its agent reports; empty: unknown, and nothing is refused on that ground. */
  capabilities?: string[];
  /** Its agent has been connected. */
  seen?: boolean;
  /** Ports in use by others, with what uses them. */
  takenPorts?: Record<number, string>;
}

/** One thing that is wrong, or doubtful. */
export interface Finding {
  /** Path in the tunnel, `exit.nodes[1].port`. */
  field: string;
  /** Stable, for translations. */
  code: string;
  /** English, says what to do. */
  message: string;
  /** The values in the message, by name. */
  params?: Record<string, string>;
}

/** The result of a validation. */
export interface Findings {
  /** Prevent storing. */
  errors: Finding[];
  /** Are told, and stored all the same. */
  warnings: Finding[];
}

/** Checks a tunnel as the panel does. Without a world every node is held to be there and able to do everything. */
export function validateTunnel(tunnel: Tunnel, world?: World): Findings;

/** All settings of measuring and deciding. */
export interface Settings {
  monitorTunnelQualityEnabled: boolean;
  /** What an exit is measured against, `host:port`. */
  probeTarget: string;
  roundIntervalMs: number;
  /** Samples per leg and round. */
  pingCount: number;
  pingTimeoutMs: number;
  /** Consecutive rounds in which the same exit must win. */
  confirmations: number;
  /** Between two switches of one owner. */
  cooldownMs: number;
  /** Smallest advantage in score, absolute. */
  minAdvantageMs: number;
  /** Smallest advantage as a share of the current score, 0 to 1. */
  minAdvantageRatio: number;
  /** What one percent of loss costs. */
  lossPenaltyMsPerPercent: number;
  /** After a refused push, before it is tried again. */
  applyRetryMs: number;
  /** For how long an unmeasured current exit with a good leg A is kept. */
  unmeasuredGraceMs: number;
  retentionDays: number;
  /** Which set of rules decides. */
  decisionRules: 'classic' | 'adaptive';
}

/** The settings as they are when nobody changed them. */
export function defaultSettings(): Settings;
/** What the numbers among the settings may be. */
export function settingRanges(): Array<{ field: keyof Settings; min: number; max: number }>;
/** Checks settings; those that are not given are the default ones. */
export function validateSettings(settings: Partial<Settings>): Findings;

/** Why a leg failed. */
export type LegFailure = 'all_lost' | 'refused' | 'unresolved' | 'unreachable' | 'unsuccessful';

/** What one round says about one leg. */
export type Leg =
  | { state: 'measured'; /** Mean of the successful samples. */ latencyMs: number; /** 0 to 1, exclusive. */ loss: number }
  | { state: 'failed'; reason: LegFailure }
  | { state: 'unmeasured'; reason: string };

/** The outcome of one connect. */
export type Sample =
  | { outcome: 'ok'; ms: number; /** SYNs that the kernel had to send again. */ retransmits?: number }
  | { outcome: 'lost' | 'refused' | 'unresolved' | 'unreachable' };

/** What was measured of a leg, in one of three ways. */
export type Measured =
  | { samples: Sample[] }
  | { average: { success: boolean; latencyMs: number; lossPercent: number } }
  | { counts: { sent: number; received: number; rttsMs: number[] | Float64Array } };

/** What one round says about a leg. */
export function leg(measured: Measured): Leg;

/** What a candidate costs, in milliseconds; lower is better. */
export interface Score {
  latencyMs: number;
  /** Combined loss of both legs, 0 to 1. */
  loss: number;
  lossPenaltyMs: number;
  /** `latencyMs + lossPenaltyMs`. */
  totalMs: number;
}

/** The score of two legs; null if one of them has no numbers. The penalty is 100 by default. */
export function score(legA: Leg, legB: Leg, lossPenaltyMsPerPercent?: number): Score | null;

/** One exit as one owner saw it in one round. */
export interface Candidate {
  exit: number;
  /** Owner → exit. */
  legA: Leg;
  /** Exit → probe target. */
  legB: Leg;
}

/** A candidate in its place. */
export interface Ranked {
  exit: number;
  /** Null: failed, or not measured. */
  score: Score | null;
}

/** Candidates, given in saved order, from the best to the worst; equal ones and failed ones stay in saved order. */
export function rank(candidates: Candidate[], lossPenaltyMsPerPercent?: number): Ranked[];

/** A leg by its letter. */
export type LegName = 'a' | 'b';

/** What the adaptive rules saw when they switched. */
export interface Why {
  trigger: 'down' | 'step' | 'loss' | 'window' | 'unmeasured';
  leg: LegName;
  needMs: number | null;
  rounds: number;
}

/** Why the exit was, or was not, switched. */
export type Reason =
  | {
      code:
        | 'no_decision'
        | 'single_exit'
        | 'incomplete'
        | 'paused'
        | 'owner_offline'
        | 'all_exits_failed'
        | 'current_is_best'
        | 'owner_line'
        | 'target_failed';
    }
  | { code: 'current_unmeasured'; remainingMs: number }
  | { code: 'insufficient_advantage'; exit: number; haveMs: number; needMs: number }
  | { code: 'confirming'; exit: number; rounds: number; needed: number }
  | { code: 'cooldown' | 'apply_retry_wait'; exit: number; remainingMs: number }
  | { code: 'pinned'; exit: number }
  | { code: 'pin_failed'; exit: number; amongOthers: Reason }
  | { code: 'switched'; from: number | null; to: number; advantageMs: number | null; why?: Why }
  | { code: 'suspect'; exit: number; leg: LegName }
  | { code: 'held'; exit: number; samples: number; needed: number }
  | { code: 'apply_failed'; exit: number; error: string };

/** What one round knows about one owner. */
export interface Round {
  /** An exit without a candidate was not measured. */
  candidates: Candidate[];
  /** The tunnel is enabled and has all its parts; default true. */
  complete?: boolean;
  /** Quality monitoring is on; default true. */
  monitoring?: boolean;
  /** The owner is connected and answered in time; default true. */
  ownerOnline?: boolean;
  /** The exit that an operator has pinned. */
  pin?: number | null;
}

/** What a round leads to. */
export interface Verdict {
  /** Best first; empty when the round was not evaluated. */
  ranked: Ranked[];
  /** Why. */
  reason: Reason;
  /** The reason as an English sentence. */
  message: string;
  /** The order to push to the owner, if all rules hold. */
  push: number[] | null;
}

/** What was accepted last. */
export interface Applied {
  /** All exits, the current one first; empty: nothing was accepted yet, and the saved order counts. */
  order: number[];
  /** When it was last switched, in the time that `nowMs` counts; null: never. */
  lastSwitch: number | null;
}

/**
 * Decides for one owner which of its exits is first.
 *
 * With a `push` in the verdict, push it and call {@link accepted} or {@link refused}. Time is yours: any clock that never
 * goes back, in milliseconds.
 */
export class DecisionMachine {
  /**
   * @param settings those that are not given are the default ones
   * @param exits all exits in saved order
   * @param applied what was accepted last, to go on after a restart
   */
  constructor(settings: Partial<Settings> | undefined, exits: number[], applied?: { order: number[]; lastSwitch?: number | null });
  /** Takes a round in. */
  evaluate(round: Round, nowMs: number): Verdict;
  /** The order that was pushed is in force. */
  accepted(order: number[], nowMs: number): void;
  /** The order that was pushed, with this exit first, is not in force. */
  refused(exit: number, error: string, nowMs: number): void;
  /** What was accepted last. */
  applied(): Applied;
  /** Gives the machine's memory back at once; without it that happens some time after the last use. */
  free(): void;
}

/** One leg in one round of a history: mean latency in milliseconds and loss (0 to 1), why it failed, or null: not measured. */
export type RecordedLeg = [latencyMs: number, loss: number] | LegFailure | null;

/** What was measured, as `exitpilot export-history` writes it. */
export interface History {
  exitpilotHistory: 1;
  name: string;
  settings?: Partial<Settings>;
  owners: Array<{
    owner: string;
    /** Names, in saved order. */
    exits: string[];
    /** Ascending: the time in milliseconds, and for each exit both legs. */
    rounds: Array<[atMs: number, exits: Array<[legA: RecordedLeg, legB: RecordedLeg]>]>;
  }>;
}

/** Settings that decide; the others are about measuring. */
export type DecidingSettings = Pick<
  Settings,
  | 'decisionRules'
  | 'confirmations'
  | 'cooldownMs'
  | 'minAdvantageMs'
  | 'minAdvantageRatio'
  | 'lossPenaltyMsPerPercent'
  | 'applyRetryMs'
  | 'unmeasuredGraceMs'
>;

/** What one way of choosing would have done. */
export interface Outcome {
  /** `best, classic`, `best, adaptive`, or the policy's text. */
  policy: string;
  /** Mean excess of the true score over the best exit of each moment. */
  meanExcessMs: number;
  p99ExcessMs: number;
  /** Mean latency of the exit in use while it worked; null: it never did. */
  meanLatencyMs: number | null;
  /** Share of the time (0 to 1) on the best exit, or on one whose score was no worse by a millisecond. */
  bestShare: number;
  /** Time on an exit that did not work while another did. */
  unusableMs: number;
  switches: number;
  /** Of these, those after which the exit that was left was no worse for a minute. */
  needlessSwitches: number;
  switchesPerDay: number;
  /** Switches back to an exit that was left within half an hour before. */
  flapsPerDay: number;
  /** Median time until an exit that became worse was left; null: none did. */
  detectionMs: number | null;
  /** Times of a minute and more in which it was worse and not left. */
  undetected: number;
}

/** What the ways of choosing would have chosen for one owner, and when. */
export interface Course {
  owner: string;
  /** Names, in saved order. */
  exits: string[];
  /** The first round, and a round's time after the last. */
  from: number;
  to: number;
  /** Stretches of which nothing is known. */
  unknown: Array<[from: number, to: number]>;
  /** For each of the policies: from when on which exit, by its place in `exits`. */
  choices: Array<Array<[from: number, exit: number]>>;
}

/** The result of a replay. */
export interface Report {
  /** The tunnel. */
  name: string;
  /** Owners that had something to choose. */
  owners: number;
  /** Measured time over all owners. */
  days: number;
  /** One for each way of choosing, those of the panel first. */
  policies: Outcome[];
  /** When each of them would have chosen what, owner by owner. */
  courses: Course[];
  suggestion: Suggestion | null;
}

/** Settings that would have done better, and why. */
export interface Suggestion {
  settings: Settings;
  changes: Array<{ name: string; from: string; to: string }>;
  why: string;
  /** Everything that was tried, the suggested first. */
  tried: Array<{
    decisionRules: Settings['decisionRules'];
    confirmations: number;
    cooldownMs: number;
    minAdvantageRatio: number;
    outcome: Outcome;
    falseSwitchesPerDay: number;
  }>;
}

/**
 * What ways of choosing would have made of a history.
 * @param history as an object, or as its JSON, which is faster; the panel's answer for a tunnel's quality is read too
 * @param settings what differs from the history's; without `decisionRules` both sets of rules are replayed
 * @param policies policies of groups beside them, such as `urltest(tolerance=20ms)`
 */
export function replay(history: History | string, settings?: Partial<DecidingSettings>, policies?: string[]): Report;

/** Settings that suit a history; tries two dozen of them. */
export function suggestSettings(history: History | string, settings?: Partial<DecidingSettings>): Suggestion;
