// A project for Node.js that uses everything as its types say.
import init, {
  type Candidate,
  DecisionMachine,
  type ExitPilotError,
  type Leg,
  type Reason,
  type Tunnel,
  defaultSettings,
  describeStrategy,
  leg,
  parsePolicy,
  protocols,
  rank,
  replay,
  score,
  settingRanges,
  strategies,
  suggestSettings,
  validateSettings,
  validateTunnel,
} from '@exitpilot/shared';

await init();

const names: string[] = strategies().map((strategy) => strategy.label['zh-CN'] + strategy.label.en);
const places: Array<'hop' | 'exit' | 'targets'> = describeStrategy('best').places;
const transports: string[] = protocols();

const tunnel: Tunnel = {
  name: 'hk',
  entry: { nodes: [{ nodeId: 1 }] },
  exit: { strategy: 'best', protocol: 'tls', nodes: [{ nodeId: 2 }, { nodeId: 3, port: 443 }] },
};
const { errors, warnings } = validateTunnel(tunnel, { nodes: [{ id: 1 }, { id: 2 }, { id: 3, takenPorts: { 443: 'web' } }] });
if (errors[0]?.code !== 'port_taken' || warnings.length > 0) throw new Error(JSON.stringify(errors));

const a: Leg = leg({ samples: [{ outcome: 'ok', ms: 20 }, { outcome: 'lost' }] });
const b: Leg = leg({ counts: { sent: 4, received: 4, rttsMs: new Float64Array([1, 2, 3, 4]) } });
const total: number = score(a, b)?.totalMs ?? Number.NaN;
const candidates: Candidate[] = [
  { exit: 1, legA: a, legB: b },
  { exit: 2, legA: b, legB: b },
];
const first: number | undefined = rank(candidates, 100)[0]?.exit;

/** Every code has its fields, and no other. */
function words(reason: Reason): string {
  switch (reason.code) {
    case 'switched':
      return `${reason.from} ${reason.to} ${reason.advantageMs} ${reason.why?.trigger}`;
    case 'confirming':
      return `${reason.rounds} of ${reason.needed}`;
    case 'cooldown':
    case 'apply_retry_wait':
      return `${reason.exit} ${reason.remainingMs}`;
    case 'pin_failed':
      return words(reason.amongOthers);
    default:
      return reason.code;
  }
}

const machine = new DecisionMachine({ decisionRules: 'classic', confirmations: 1 }, [1, 2]);
const verdict = machine.evaluate({ candidates, pin: null }, 0);
if (verdict.push) machine.accepted(verdict.push, 0);
else machine.refused(1, 'unanswered', 0);
const order: number[] = machine.applied().order;
machine.free();

try {
  parsePolicy('urltest(');
} catch (error) {
  const { code, field, params } = error as ExitPilotError;
  if (code !== 'strategy_syntax' || field !== 'policy' || params['at'] === undefined) throw error;
}

const history = {
  exitpilotHistory: 1,
  name: 'hk',
  owners: [{ owner: 'a', exits: ['b', 'c'], rounds: [[0, [[[1, 0], null], ['refused', [2, 0.5]]]], [5000, [[null, null], [[1, 0], [2, 0]]]]] }],
} satisfies Parameters<typeof replay>[0];
const days: number = replay(history, { cooldownMs: 0 }, ['fixed(0)']).days;
const why: string = suggestSettings(JSON.stringify(history)).why;
const valid: boolean = validateSettings(defaultSettings()).errors.length === 0;
const ranges: number = settingRanges().length;

export { days, first, names, order, places, ranges, total, transports, valid, why, words };
