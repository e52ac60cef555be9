// Facts of the wire between host daemon and guest daemon besides its calls: HTTP/1.1 with JSON
// bodies on the guest's fixed address. Every guest response is parsed with the schemas of its call
// and never trusted.
import { z } from 'zod';
import { errnoName } from './files.ts';

export {
  CLONE_MAX_MIB,
  CLONE_TIMEOUT_SECONDS,
  EXEC_COMMAND_LENGTH,
  EXEC_OUTPUT_BYTES,
  GUEST_PORT,
  STREAM_HEAD_BYTES,
} from './guest-limits.ts';

/**
 * Address and prefix of every guest, and its gateway: the TAP device in its network namespace, also
 * its DNS resolver.
 */
export const GUEST_NETWORK = {
  address: '169.254.0.21',
  prefixLength: 30,
  gateway: '169.254.0.22',
  mac: '52:54:00:b0:00:01',
} as const;

/** Body of a refused call; `code` and `errno` for calls that define errors. */
export const guestError = z.object({
  error: z.object({ message: z.string().max(4_096), code: z.string().optional(), errno: errnoName.optional() }),
});
