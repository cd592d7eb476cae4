// What must not compile.
import { DecisionMachine, type Reason, leg, replay, score, validateTunnel } from '@exitpilot/shared';

export function never(reason: Reason) {
  // @ts-expect-error an entry is needed
  validateTunnel({ name: 'x' });
  // @ts-expect-error one way of measuring, not none
  leg({});
  // @ts-expect-error a failure says why
  score({ state: 'failed' }, { state: 'measured', latencyMs: 1, loss: 0 });
  // @ts-expect-error the exits are needed
  new DecisionMachine({});
  // @ts-expect-error there are two sets of rules
  new DecisionMachine({ decisionRules: 'clever' }, [1]);
  // @ts-expect-error how it was measured cannot be changed afterwards
  replay('', { pingCount: 3 });
  // @ts-expect-error only a switch has an exit that was left
  if (reason.code === 'cooldown') return reason.from;
  return undefined;
}
