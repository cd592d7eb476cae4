// A field for a strategy's text, in React: says at once what is wrong, and where.
import init, { type ExitPilotError, type Strategy, describeStrategy, parsePolicy } from '@exitpilot/shared';
import { useEffect, useState } from 'react';

export function StrategyField({ language }: { language: 'zh-CN' | 'en' }) {
  const [ready, setReady] = useState(false);
  const [text, setText] = useState('urltest(tolerance=20ms)');
  useEffect(() => {
    init().then(() => setReady(true));
  }, []);
  if (!ready) return null;

  let problem: string | undefined;
  try {
    parsePolicy(text);
  } catch (error) {
    const { message, params } = error as ExitPilotError;
    problem = params.at ? `${params.at}: ${message}` : message;
  }
  const strategy: Strategy = describeStrategy(text);
  return (
    <label>
      {strategy.label[language]}
      <input value={text} onChange={(event) => setText(event.target.value)} aria-invalid={problem !== undefined} />
      <small>{problem ?? strategy.when[language]}</small>
    </label>
  );
}
