// The editor as a component.
import { type TunnelEditorHandle, type TunnelEditorOptions, mountTunnelEditor } from '@exitpilot/tunnel-editor';
import { useEffect, useRef } from 'react';

export function TunnelEditor(props: TunnelEditorOptions) {
  const place = useRef<HTMLDivElement>(null);
  const editor = useRef<TunnelEditorHandle>(null);
  // The editor asks for these when it needs them, so that new ones do not make a new editor.
  const latest = useRef(props);
  useEffect(() => {
    latest.current = props;
  });
  const { apiBase, tunnelId, language, theme } = props;
  useEffect(() => {
    if (!place.current) return;
    const { token, fetch } = latest.current;
    const shown = mountTunnelEditor(place.current, {
      apiBase,
      tunnelId,
      language: latest.current.language,
      theme: latest.current.theme,
      token: typeof token === 'function' ? token : () => latest.current.token as string,
      fetch,
      onSaved: (tunnel) => latest.current.onSaved?.(tunnel),
      onCancel: () => latest.current.onCancel?.(),
    });
    editor.current = shown;
    return () => {
      editor.current = null;
      shown.unmount();
    };
  }, [apiBase, tunnelId]);
  useEffect(() => {
    if (language) editor.current?.setLanguage(language);
  }, [language]);
  useEffect(() => {
    editor.current?.setTheme(theme ?? 'system');
  }, [theme]);
  return <div ref={place} />;
}
