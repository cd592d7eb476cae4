// Malformed inputs into every function: each time an `Error` with code and field, and the module still works.
import assert from 'node:assert/strict';
import * as it from '@exitpilot/shared';

const count = Number(process.env.EXITPILOT_MALFORMED ?? 10_000);
const seed = Number(process.env.EXITPILOT_SEED ?? 1);

// mulberry32
let state = seed >>> 0;
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const below = (n) => Math.floor(random() * n);
const one = (list) => list[below(list.length)];

function cyclic() {
  const object = { list: [] };
  object.list.push(object, [object.list]);
  return object;
}
function deep(levels) {
  let value = 1;
  for (let i = 0; i < levels; i++) value = i % 2 ? [value] : { nodes: value };
  return value;
}
const thrower = () => {
  throw one([new Error('no'), 'text', undefined, null, 7, Object.assign(new Error('no'), { code: 5 }), cyclic()]);
};
const throwing = new Proxy({}, { get: thrower, ownKeys: thrower, getPrototypeOf: thrower, has: thrower });
const revoked = Proxy.revocable({}, {});
revoked.revoke();
// Every member of it is again such an object.
const endless = new Proxy({}, {
  get: () => endless,
  ownKeys: () => ['name', 'nodes', 'x'],
  getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }),
});
const longList = new Proxy([], { get: (target, key) => (key === 'length' ? 4294967295 : Reflect.get(target, key)) });
const longText = 'x'.repeat(5_000_000);

const JUNK = [
  () => null,
  () => Number.NaN,
  () => Number.POSITIVE_INFINITY,
  () => one([-1, 0.5, 1e308, -1e308, 2 ** 53, 2 ** 64, -0, 5e-324, 99999]),
  () => below(1000),
  () => true,
  () => one(['', 'x', '\ud800', '\u0000', 'best', 'urltest(', '{"a":1}', '[]', '💥'.repeat(300), 'NaN', '__proto__']),
  () => 10n,
  () => Symbol('x'),
  () => thrower,
  () => class {},
  () => [],
  () => ({}),
  () => [[], [[]], {}],
  () => new Date(),
  () => new Map([[1, 2]]),
  () => new Set([1]),
  () => /x/,
  () => new Error('x'),
  () => Promise.resolve(1),
  () => new Uint8Array(9),
  () => new BigInt64Array(2),
  () => new DataView(new ArrayBuffer(4)),
  () => cyclic(),
  () => deep(below(200)),
  () => deep(5000),
  () => throwing,
  () => revoked.proxy,
  () => endless,
  () => longList,
  () => new Array(4294967295),
  () => [, 1],
  () => ({ get name() { return thrower(); } }),
  () => ({ toJSON: thrower, valueOf: thrower, toString: thrower, [Symbol.toPrimitive]: thrower }),
  () => ({ __proto__: null, constructor: 1, ['__proto__']: 2 }),
  () => Object.fromEntries(Array.from({ length: below(300) }, (_, i) => [`k${i}`, i])),
  () => Array.from({ length: below(300) }, () => below(70000)),
  () => new Proxy(() => {}, { apply: thrower }),
  () => globalThis,
  () => new it.DecisionMachine({}, [1]),
];
// These take long; a few are enough.
const SLOW = [() => longText, () => new Float64Array(600_000), () => Array.from({ length: 20_000 }, () => 'x'.repeat(300))];
const junk = () => (random() < 0.001 ? one(SLOW)() : one(JUNK)());

const isPlain = (value) =>
  Array.isArray(value) || (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype);

/** A copy in which one place holds junk, is gone, or is there under another name. */
function spoilt(value) {
  if (!isPlain(value) || random() < 0.1) return junk();
  if (Array.isArray(value)) {
    const copy = [...value];
    if (copy.length === 0 || random() < 0.05) copy.push(junk());
    else {
      const at = below(copy.length);
      copy[at] = spoilt(copy[at]);
    }
    return copy;
  }
  const copy = { ...value };
  const keys = Object.keys(copy);
  const key = keys.length === 0 ? 'x' : one(keys);
  if (random() < 0.1) delete copy[key];
  else if (random() < 0.1) copy[one(['x', 'constructor', '', key.toUpperCase(), `${key} `])] = copy[key];
  else copy[key] = keys.length === 0 ? junk() : spoilt(copy[key]);
  return copy;
}

const leg = (latencyMs, loss = 0.1) => ({ state: 'measured', latencyMs, loss });
const candidates = [
  { exit: 1, legA: leg(100), legB: leg(10) },
  { exit: 2, legA: leg(20), legB: { state: 'failed', reason: 'refused' } },
  { exit: 3, legA: leg(20), legB: { state: 'unmeasured', reason: 'away' } },
];
const settings = { confirmations: 2, decisionRules: 'adaptive', probeTarget: 'x:1', minAdvantageRatio: 0.2 };
const rounds = Array.from({ length: 12 }, (_, i) => [i * 5000, [[[20 + i, 0], [10, 0]], [[25, 0.1], i === 3 ? 'all_lost' : null]]]);
const history = { exitpilotHistory: 1, name: 'x', settings: { pingCount: 4 }, owners: [{ owner: 'a', exits: ['b', 'c'], rounds }] };
const tunnel = {
  name: 'hk',
  type: 'tunnel',
  enabled: true,
  entry: { nodes: [{ nodeId: 1 }] },
  hops: [{ strategy: 'round', protocol: 'tls', nodes: [{ nodeId: 2 }] }],
  exit: { strategy: 'best', protocol: 'wss', maxFails: 3, failTimeoutMs: 5, nodes: [{ nodeId: 3, port: 7, connectIp: '::1' }, { nodeId: 4 }] },
};
const world = { nodes: [{ id: 1, name: 'a', portRange: '1-9', capabilities: ['strategy:fifo'], seen: true, takenPorts: { 7: 'x' } }], tunnelNames: ['y'] };

const old = new it.DecisionMachine({}, [1, 2, 3]);
const method = (name) => (self, ...args) => it.DecisionMachine.prototype[name].apply(self, args);
// What is called, and what it takes. `this` of a method is an argument like any other.
const FUNCTIONS = {
  describeStrategy: [it.describeStrategy, ['best']],
  parsePolicy: [it.parsePolicy, ['urltest(tolerance=20ms)']],
  validateTunnel: [it.validateTunnel, [tunnel, world]],
  validateSettings: [it.validateSettings, [settings]],
  leg: [it.leg, [{ samples: [{ outcome: 'ok', ms: 5, retransmits: 1 }, { outcome: 'lost' }] }]],
  'leg of counts': [it.leg, [{ counts: { sent: 3, received: 2, rttsMs: [1, 2] } }]],
  score: [it.score, [leg(1), leg(2), 100]],
  rank: [it.rank, [candidates, 100]],
  replay: [it.replay, [history, { cooldownMs: 0, decisionRules: 'classic' }, ['fixed(0)']]],
  suggestSettings: [it.suggestSettings, [history, { cooldownMs: 0 }]],
  'new DecisionMachine': [(...args) => new it.DecisionMachine(...args), [settings, [1, 2, 3], { order: [2, 1], lastSwitch: 5 }]],
  evaluate: [method('evaluate'), [old, { candidates, complete: true, monitoring: true, ownerOnline: true, pin: 1 }, 5000]],
  accepted: [method('accepted'), [old, [1, 2, 3], 5000]],
  refused: [method('refused'), [old, 1, 'no', 5000]],
  applied: [method('applied'), [old]],
  free: [method('free'), [{}]],
};

/** Calls that are right, and their answers. */
function works() {
  const machine = new it.DecisionMachine(settings, [1, 2, 3]);
  const answers = [
    it.strategies(),
    it.parsePolicy('min(tolerance=5)'),
    it.validateTunnel(tunnel, world),
    it.rank(candidates),
    it.replay(history),
    ...[0, 5000, 10_000].map((now) => machine.evaluate({ candidates }, now)),
  ];
  machine.free();
  return JSON.stringify(answers);
}

const sound = works();
const codes = new Map();
let accepted = 0;
for (const [name, [run, args]] of Object.entries(FUNCTIONS)) {
  for (let refused = 0, tries = 0; refused < count; tries++) {
    assert.ok(tries < count * 20, `${name} takes almost everything`);
    const at = below(args.length);
    const given = args.map((value, i) => (i === at ? spoilt(value) : value));
    let thrown;
    try {
      run(...given);
      accepted++;
      continue;
    } catch (error) {
      thrown = error;
    }
    const place = `${name}, argument ${at}, seed ${seed}, try ${tries}`;
    assert.ok(thrown instanceof Error, `${place}: ${typeof thrown} was thrown`);
    assert.ok(typeof thrown.code === 'string' && thrown.code !== '', `${place}: no code: ${thrown.stack}`);
    assert.ok(typeof thrown.field === 'string', `${place}: no field: ${thrown.stack}`);
    assert.notEqual(thrown.code, 'internal', `${place}: ${thrown.stack} ${thrown.cause?.stack}`);
    assert.ok(thrown.field !== '' || thrown.code === 'malformed', `${place}: no field: ${thrown.code} ${thrown.message}`);
    assert.ok(JSON.stringify([thrown.message, thrown.field, thrown.params]).length < 20_000, `${place}: a message of ${thrown.message.length} characters`);
    codes.set(thrown.code, (codes.get(thrown.code) ?? 0) + 1);
    refused++;
    if (refused % 1000 === 0) assert.equal(works(), sound, `${place}: it no longer works as before`);
  }
}
assert.equal(works(), sound);
const told = [...codes].sort((a, b) => b[1] - a[1]).map(([code, n]) => `${code} ${n}`);
console.log(`${Object.keys(FUNCTIONS).length} functions, ${count} malformed inputs each (seed ${seed}); ${accepted} were no errors; ${told.join(', ')}`);
