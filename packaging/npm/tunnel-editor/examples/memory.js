// A `fetch` with a few nodes and tunnels in the page's memory, for trying the editor without a panel.
const node = (id, name) => ({
  id, revision: 1, name, serverIp: `192.0.2.${id}`, serverIpV4: '', serverIpV6: '', portRange: '10000-60000',
  interfaceName: '', tcpListenAddr: '[::]', udpListenAddr: '[::]', online: id !== 4, version: '', capabilities: [], lastSeen: null,
});

const answer = (status, body) => new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } });

const refusal = (status, type, errors, detail) => answer(status, { type, title: detail, status, detail, errors });

/** A new memory; `tunnels` are those that are there. */
export function memory(tunnels = []) {
  const nodes = [node(1, 'entry-1'), node(2, 'exit-a'), node(3, 'exit-b'), node(4, 'exit-c')];
  let last = Math.max(0, ...tunnels.map((tunnel) => tunnel.id));
  const store = (id, input) => {
    // A panel refuses more than that; this one shows how a refusal looks.
    if (input.name === 'reserved') {
      const error = { field: 'name', code: 'name_taken', message: 'the name is taken', params: { name: input.name } };
      return refusal(422, 'invalid_fields', [error], 'the tunnel cannot be stored');
    }
    const place = tunnels.findIndex((tunnel) => tunnel.id === id);
    const before = tunnels[place];
    if (before && input.version !== before.version) return refusal(409, 'stale_version', [], 'somebody was faster');
    const tunnel = { ...before, ...input, id, version: (before?.version ?? 0) + 1 };
    if (before) tunnels[place] = tunnel;
    else tunnels.push(tunnel);
    return answer(before ? 200 : 201, tunnel);
  };
  return async (address, { method = 'GET', body } = {}) => {
    const [, what, id] = address.match(/\/(nodes|tunnels)(?:\/(\d+))?$/) ?? [];
    if (what === 'nodes') return answer(200, nodes);
    if (what !== 'tunnels') return refusal(404, 'not_found', [], 'there is nothing here');
    if (method === 'POST') return store((last += 1), JSON.parse(body));
    if (id === undefined) return answer(200, tunnels);
    const found = tunnels.find((tunnel) => tunnel.id === Number(id));
    if (!found) return refusal(404, 'not_found', [], 'there is no such tunnel');
    return method === 'PUT' ? store(found.id, JSON.parse(body)) : answer(200, found);
  };
}
