// How a tunnel speaks over its WebSocket: binary frames are the bytes, a text frame says that one
// direction came to its end.
import { tunnelEnd } from '@berth/contract/connections/tunnel.ts';
import { NotUnderstood, type Dialect } from './websocket-join.ts';

export const TUNNEL_DIALECT: Dialect = {
  binary: (frame) => frame,
  text: (value) => {
    if (tunnelEnd.safeParse(value).success) return 'end';
    throw new NotUnderstood('a text frame of a tunnel is {"end":true} or {"bearer":"..."}');
  },
  received: (chunk) => [chunk],
  ended: () => ({ send: [{ json: { end: true } }], endOurs: false }),
  alive: null,
};
