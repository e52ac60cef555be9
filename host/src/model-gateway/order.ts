// Orders of the host daemon to its model gateway, over one Unix connection, and their results.
import { z } from 'zod';
import { modelAccess } from '@berth/protocol/calls/model-access.ts';

/** Certificates of an operator's authorities. */
export const CA_BYTES = 1_048_576;
export const ORDER_BYTES = CA_BYTES + 65_536;
export const RESULT_BYTES = 4_096;

/**
 * `settings` comes first. `serve` states all of a VM: repeated, it changes what differs. `close`
 * ends a VM's listener and requests.
 */
export const modelOrder = z.discriminatedUnion('do', [
  z.object({ do: z.literal('settings'), ca: z.string().nullable() }),
  z.object({
    do: z.literal('serve'),
    vm: z.string(),
    listen: z.object({ address: z.string(), port: z.int() }),
    /** Null: not known yet. */
    access: modelAccess.nullable(),
  }),
  z.object({ do: z.literal('close'), vm: z.string() }),
]);
export type ModelOrder = z.infer<typeof modelOrder>;

/** Null: carried out. */
export const orderResult = z.object({ failure: z.string().max(1_000).nullable() });
