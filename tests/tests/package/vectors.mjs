// The vectors of shared/tests/vectors through the package, wherever it runs: `it` is the package, `vectors` what the files
// hold, by name. Returns how many there were, and every answer with its type.

const assert = {
  ok(value, place) {
    if (!value) throw new Error(place);
  },
  equal(is, should, place) {
    if (!Object.is(is, should)) throw new Error(`${place}: ${is}, not ${should}`);
  },
  deepEqual(is, should, place) {
    const sorted = (_, value) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
        : value;
    assert.equal(JSON.stringify(is, sorted), JSON.stringify(should, sorted), place);
  },
};
const measured = (latencyMs, loss = 0) => ({ state: 'measured', latencyMs, loss });

function bits(number) {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, number);
  return `0x${view.getBigUint64(0).toString(16).padStart(16, '0')}`;
}

export function run(it, vectors) {
  const seen = [];
  const see = (type, value) => {
    seen.push([type, value]);
    return value;
  };
  let count = 0;
  for (const v of vectors.scores) {
    const score = see('it.Score | null', it.score(measured(...v.legA), measured(...v.legB), v.penalty));
    assert.equal(bits(score.totalMs), v.totalBits, JSON.stringify(v));
    assert.equal(bits(score.loss), v.lossBits, JSON.stringify(v));
    count++;
  }

  const sample = (text) => {
    if (Number.isNaN(Number.parseFloat(text))) return { outcome: text };
    const [ms, retransmits] = text.split('+').map(Number);
    return retransmits === undefined ? { outcome: 'ok', ms } : { outcome: 'ok', ms, retransmits };
  };
  for (const v of vectors.legs) {
    const [success, latencyMs, lossPercent] = v.average ?? [];
    const given = v.average ? { average: { success, latencyMs, lossPercent } } : { samples: v.samples.map(sample) };
    assert.deepEqual(see('it.Leg', it.leg(see('it.Measured', given))), v.leg, JSON.stringify(v));
    count++;
  }

  const candidate = ([exit, what]) => {
    const half = (ms) => measured(ms / 2);
    if (what === 'failed') return { exit, legA: { state: 'failed', reason: 'all_lost' }, legB: half(2) };
    if (what === 'away') return { exit, legA: half(20), legB: { state: 'unmeasured', reason: 'agent offline' } };
    return { exit, legA: half(what), legB: half(what) };
  };
  for (const story of vectors.stories) {
    let machine;
    let now = 1_000_000;
    for (const round of story.rounds) {
      for (let time = 0; time < (round.times ?? 1); time++) {
        now += round.afterMs ?? 5000;
        const exits = round.exits.map(([exit]) => exit);
        // Exits that come and go make a new machine that goes on from what was applied; one without exits is none.
        if (exits.length === 0) continue;
        const same = machine && machine.exits.join() === exits.join();
        if (!same) {
          const applied = machine?.it.applied();
          machine = { exits, it: new it.DecisionMachine(see('Partial<it.Settings>', story.settings ?? {}), exits, applied) };
        }
        const { complete = true, monitoring = true, online = true, pin = null } = round;
        const input = see('it.Round', {
          candidates: round.exits.map(candidate),
          complete,
          monitoring,
          ownerOnline: online,
          pin,
        });
        const verdict = see('it.Verdict', machine.it.evaluate(input, now));
        const place = `${story.name}, ${JSON.stringify(round)}, time ${time}`;
        assert.equal(verdict.reason.code, round.reason, place);
        if (round.amongOthers) assert.equal(verdict.reason.amongOthers.code, round.amongOthers, place);
        assert.deepEqual(verdict.push, round.push ?? null, place);
        if (verdict.push && round.refuse) machine.it.refused(verdict.push[0], 'refused', now);
        else if (verdict.push) machine.it.accepted(verdict.push, now);
        see('it.Applied', machine.it.applied());
        count++;
      }
    }
  }

  const validation = vectors.validation;
  const world = see('it.World', {
    nodes: validation.nodes.map(({ taken = {}, ...node }) => ({ ...node, takenPorts: taken })),
    tunnelNames: validation.tunnelNames,
  });
  const changed = (value, set) => {
    const copy = structuredClone(value);
    for (const [pointer, replacement] of Object.entries(set)) {
      const path = pointer.split('/').slice(1);
      const last = path.pop();
      path.reduce((at, key) => at[key], copy)[last] = replacement;
    }
    return copy;
  };
  const found = (findings) => findings.map(({ field, code }) => `${field} ${code}`);
  for (const { set, errors, warnings = [] } of validation.tunnels) {
    const findings = see('it.Findings', it.validateTunnel(see('it.Tunnel', changed(validation.tunnel, set)), world));
    assert.deepEqual(found(findings.errors), errors, JSON.stringify(set));
    assert.deepEqual(found(findings.warnings), warnings, JSON.stringify(set));
    count++;
  }
  const defaults = see('it.Settings', it.defaultSettings());
  for (const { set, errors } of validation.settings) {
    assert.deepEqual(found(see('it.Findings', it.validateSettings(changed(defaults, set))).errors), errors, JSON.stringify(set));
    count++;
  }

  // What has no vectors, for its types.
  see('it.Strategy[]', it.strategies());
  see('it.Strategy', it.describeStrategy('weighted(3)'));
  see('it.Protocol[]', it.protocols());
  see('Array<{ field: keyof it.Settings; min: number; max: number }>', it.settingRanges());
  see('it.Policy', it.parsePolicy('fixed_fallback(0, 1s)'));
  see('it.Ranked[]', it.rank([[1, 50], [2, 'failed'], [3, 20]].map(candidate)));
  const noise = (i, k) => ((i * 7919 + k * 104729) % 100) / 20;
  const rounds = Array.from({ length: 400 }, (_, i) => [
    i * 5000,
    [0, 1, 2].map((k) => [[20 + noise(i, k) + (k === 0 && i > 200 ? 200 : 0), 0], i % 97 === k ? null : [10, 0]]),
  ]);
  rounds[3][1][2] = ['refused', null];
  const history = { exitpilotHistory: 1, name: 'x', owners: [{ owner: 'a', exits: ['b', 'c', 'd'], rounds }] };
  see('it.History', history);
  const report = see('it.Report', it.replay(history, undefined, ['urltest(tolerance=20ms)', 'fixed(1)']));
  assert.deepEqual(it.replay(JSON.stringify(history), {}, ['urltest(tolerance=20ms)', 'fixed(1)']), report, 'a history as text');
  assert.deepEqual(report.policies.map((p) => p.policy), ['best, classic', 'best, adaptive', 'urltest(tolerance=20ms)', 'fixed(1)'], 'the ways of choosing');
  assert.ok(report.policies[0].switches >= 1, 'the exit that became worse is left');
  see('it.Suggestion', it.suggestSettings(history));

  // The adaptive rules say more.
  const adaptive = new it.DecisionMachine({ decisionRules: 'adaptive', cooldownMs: 0 }, [1, 2]);
  const reasons = new Set();
  for (let i = 0; i < 400; i++) {
    const a = i % 50 === 49 ? 'failed' : 100 + noise(i, 1) + (i > 200 ? 150 : 0);
    const verdict = see('it.Verdict', adaptive.evaluate({ candidates: [[1, a], [2, 120 + noise(i, 2)]].map(candidate) }, i * 5000));
    reasons.add(verdict.reason.code);
    if (verdict.push) adaptive.accepted(verdict.push, i * 5000);
  }
  assert.ok(reasons.has('switched') && reasons.has('suspect'), [...reasons].join());
  return { count, seen };
}
