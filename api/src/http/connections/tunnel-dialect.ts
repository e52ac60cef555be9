// WebSocket frames of a tunnel: binary frames carry bytes, text frames end a direction
// or hold the output.
import { tunnelOrder } from '@berth/contract/connections/tunnel.ts';
import { InvalidFrame, type Dialect } from './websocket-join.ts';

export const TUNNEL_DIALECT: Dialect = {
  binary: (frame) => frame,
  text: (value) => {
    const order = tunnelOrder.safeParse(value);
    if (!order.success)
      throw new InvalidFrame('text frames of a tunnel: {"end":true}, {"pause":true}, {"bearer":".."}');
    if ('end' in order.data) return 'end';
    return order.data.pause ? 'pause' : 'resume';
  },
  received: (chunk) => [chunk],
  ended: () => ({ send: [{ json: { end: true } }], endOurs: false }),
  alive: null,
};
