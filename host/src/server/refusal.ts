// Converts a failure of the daemon to a status and a body.
import { HOST_ERRORS, type HostErrorBody, type HostErrorCode } from '@berth/protocol/host.ts';
import { RequestFault } from '@berth/protocol/http/serve.ts';
import type { Logger } from 'pino';
import { HostError } from '../vm/host-error.ts';

/** A bug becomes a 500 without details, which are logged. */
export function refusalOf(error: unknown, log: Logger): { status: number; body: HostErrorBody } {
  const known = knownOf(error);
  if (known.code === 'internal') log.error({ err: error }, 'call failed');

  const { code, message, shortage, errno } = known;
  return {
    status: HOST_ERRORS[code],
    body: {
      error: {
        code,
        message,
        ...(shortage === undefined ? {} : { shortage }),
        ...(errno === undefined ? {} : { errno }),
      },
    },
  };
}

function knownOf(error: unknown): HostError {
  if (error instanceof HostError) return error;

  if (error instanceof RequestFault) return new HostError(FAULTS[error.kind], error.message);

  return new HostError('internal', "internal error; the host daemon's log has the reason");
}

const FAULTS: Readonly<Record<RequestFault['kind'], HostErrorCode>> = {
  invalid: 'invalid_request',
  body_too_long: 'invalid_request',
  upload_too_long: 'file_too_large',
};
