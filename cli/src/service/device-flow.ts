// Device code sign-in (RFC 8628): the user approves in a browser while the CLI polls.
import { setTimeout as delay } from 'node:timers/promises';
import { CliFailure, EXIT } from '../output/failure.ts';
import { OAuthRefusal, OAuthUnreachable, redeemDevice, type DeviceRequest, type OAuthPlace } from './oauth.ts';
import type { Session } from './profile-file.ts';

/** Added to the interval on `slow_down` (RFC 8628, section 3.5). */
const SLOWER_BY_SECONDS = 5;
const LEAST_SECONDS = 1;
const MOST_SECONDS = 60;

/** Polls until a decision or the expiry of the code. Throws a CliFailure if denied or expired. */
export async function awaitApproval(place: OAuthPlace, device: DeviceRequest): Promise<Session> {
  const endsAt = Date.now() + device.expiresInSeconds * 1_000;
  let waitSeconds = clamp(device.intervalSeconds);
  for (;;) {
    await delay(Math.min(waitSeconds * 1_000, Math.max(0, endsAt - Date.now())), undefined, { signal: place.signal });
    try {
      return await redeemDevice(place, device.deviceCode);
    } catch (error) {
      waitSeconds = clamp(waitAfter(error, waitSeconds));
      // Retry temporary failures until the code expires.
      if (Date.now() >= endsAt) throw error instanceof OAuthUnreachable ? error : expired();
    }
  }
}

/** Returns the seconds until the next poll. Throws permanent failures. */
function waitAfter(error: unknown, waitedSeconds: number): number {
  if (error instanceof OAuthUnreachable) return waitedSeconds * 2;
  if (!(error instanceof OAuthRefusal)) throw error;
  switch (error.code) {
    case 'authorization_pending':
      return waitedSeconds;
    case 'slow_down':
      return Math.max(waitedSeconds + SLOWER_BY_SECONDS, error.retryAfter ?? 0);
    case 'server_error':
    case 'temporarily_unavailable':
      return Math.max(waitedSeconds * 2, error.retryAfter ?? 0);
    case 'access_denied':
      throw new CliFailure('the sign-in was denied', { exitCode: EXIT.signIn, cause: error });
    case 'expired_token':
      throw expired();
    default:
      throw new CliFailure(`the sign-in was refused: ${error.message} (${error.code})`, {
        exitCode: EXIT.signIn,
        cause: error,
      });
  }
}

function expired(): CliFailure {
  return new CliFailure('the sign-in was not approved before its code expired', {
    remedy: 'run berth login again',
    exitCode: EXIT.signIn,
  });
}

function clamp(seconds: number): number {
  return Math.min(MOST_SECONDS, Math.max(LEAST_SECONDS, seconds));
}
