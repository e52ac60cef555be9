// WebSocket frames of a tunnel: binary frames carry bytes, a text frame ends a direction.
import { tunnelEnd } from '@berth/contract/connections/tunnel.ts';
import { InvalidFrame, type Dialect } from './websocket-join.ts';

export const TUNNEL_DIALECT: Dialect = {
  binary: (frame) => frame,
  text: (value) => {
    if (tunnelEnd.safeParse(value).success) return 'end';
    throw new InvalidFrame('a text frame of a tunnel is {"end":true} or {"bearer":"..."}');
  },
  received: (chunk) => [chunk],
  ended: () => ({ send: [{ json: { end: true } }], endOurs: false }),
  alive: null,
};
