// A page with the editor in it. With `#token=…` it asks the panel that is behind /api/ of the same server; without, it
// needs no panel.
import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { memory } from '../memory.js';
import { TunnelEditor } from './TunnelEditor.tsx';

const token = new URLSearchParams(location.hash.slice(1)).get('token') ?? undefined;
const fetch = token ? undefined : memory();

function Page() {
  const [open, setOpen] = useState(false);
  const [tunnel, setTunnel] = useState();
  const [language, setLanguage] = useState('en');
  return (
    <>
      <h1>A panel of somebody else's, in React</h1>
      <button id="open" onClick={() => setOpen(!open)}>{open ? 'Close' : 'Open'}</button>
      <button id="language" onClick={() => setLanguage(language === 'en' ? 'zh-CN' : 'en')}>{language}</button>
      <p id="said" role="status">{tunnel && `saved: ${tunnel.name}`}</p>
      {open && (
        <TunnelEditor
          token={token}
          fetch={fetch}
          language={language}
          tunnelId={tunnel?.id}
          onSaved={(saved) => {
            setTunnel(saved);
            setOpen(false);
          }}
          onCancel={() => setOpen(false)}
        />
      )}
    </>
  );
}

createRoot(document.getElementById('page')).render(
  <StrictMode>
    <Page />
  </StrictMode>,
);
