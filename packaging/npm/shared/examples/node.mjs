// node examples/node.mjs
import { DecisionMachine, leg, parsePolicy, replay, strategies, validateTunnel } from '@exitpilot/shared';

// What can be chosen, in words.
for (const { strategy, label, when } of strategies().slice(0, 4)) {
  console.log(`${strategy}: ${label.en} (${label['zh-CN']}). ${when.en}`);
}

// A tunnel, checked as the panel checks it.
const { errors } = validateTunnel({
  name: 'x',
  entry: { nodes: [] },
  exit: { strategy: 'urltest(tolerance=soon)', nodes: [{ nodeId: 2 }, { nodeId: 3 }] },
});
for (const { field, code, message } of errors) console.log(`${field}: ${message} [${code}]`);

// Errors say what is wrong and where.
try {
  parsePolicy('urltest(tolerance=soon)');
} catch (error) {
  console.log(error.code, error.field, 'character', error.params.at);
}

// Rounds of measurements go in, decisions with their reason come out.
const machine = new DecisionMachine({ confirmations: 2 }, [1, 2]);
const measured = (ms) => leg({ samples: [{ outcome: 'ok', ms }, { outcome: 'ok', ms }] });
for (const nowMs of [0, 5000, 10_000]) {
  const candidates = [
    { exit: 1, legA: measured(180), legB: measured(20) },
    { exit: 2, legA: measured(40), legB: measured(20) },
  ];
  const { message, push } = machine.evaluate({ candidates }, nowMs);
  console.log(`${nowMs} ms: ${message}`);
  if (push) machine.accepted(push, nowMs);
}
console.log('applied:', machine.applied().order.join(', '));

// What other settings would have made of what was measured.
const rounds = Array.from({ length: 720 }, (_, i) => [
  i * 5000,
  [
    [[i < 360 ? 20 : 200, 0], [10, 0]],
    [[40, 0], [10, 0]],
  ],
]);
const history = { exitpilotHistory: 1, name: 'hk', owners: [{ owner: 'entry', exits: ['hk-1', 'hk-2'], rounds }] };
for (const it of replay(history, { confirmations: 5 }, ['urltest(tolerance=20ms)']).policies) {
  console.log(`${it.policy}: ${it.switches} switches, on average ${it.meanExcessMs.toFixed(1)} ms above the best exit`);
}
