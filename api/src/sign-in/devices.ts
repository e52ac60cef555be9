// Sign-in on a device: its request, the approval on a page and the redemption by polls.
import { isAPIError } from 'better-auth/api';
import { addressKey } from '../rules/access/throttle.ts';
import {
  DeviceRefusal,
  type DeviceRefusalCode,
  type DeviceRequest,
  type ClientRefreshed,
} from '../services/people/client-sign-in-port.ts';
import { SignInError, type Caller, type PendingDevice, type SignIn } from '../services/people/sign-in-port.ts';
import type { DerivedKeys } from '../services/context/secret-key.ts';
import type { Database } from '../store/database/schema.ts';
import { markSso } from '../store/access/sso.ts';
import { decideDevice, findApproval, findDevice, isPassword } from '../store/people/sign-in.ts';
import { openDeviceCode, sealDeviceCode, shownUserCode, storedUserCode } from './device-code.ts';
import { callerHeaders, type Library } from './library.ts';
import type { Logins } from './logins.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

interface DeviceParts {
  db: Database;
  library: Library;
  logins: Logins;
  /** Seal device codes. */
  keys: () => DerivedKeys;
  throttle: SignIn['throttle'];
}

export class Devices {
  readonly #parts: DeviceParts;

  constructor(parts: DeviceParts) {
    this.#parts = parts;
  }

  async find(userCode: string): Promise<PendingDevice | null> {
    const stored = storedUserCode(userCode);
    const row = stored === null ? undefined : await findDevice(this.#parts.db, stored);
    if (row === undefined) return null;
    const status = row.status === 'approved' || row.status === 'denied' ? row.status : 'pending';
    return { userCode: shownUserCode(row.userCode), clientId: row.clientId ?? '', status };
  }

  async decide(
    userCode: string,
    by: { userId: string; loginId: string | null },
    decision: 'approve' | 'deny',
  ): Promise<void> {
    const stored = storedUserCode(userCode);
    const status = decision === 'approve' ? 'approved' : 'denied';
    if (stored !== null && (await decideDevice(this.#parts.db, stored, by, status))) return;
    throw new SignInError('link_invalid', 'no device is waiting with this code; restart the sign-in on the device');
  }

  async request(clientId: string, caller: Caller): Promise<DeviceRequest> {
    await this.#parts.throttle('device-request', [addressKey(caller.address)]);
    const made = await this.#parts.library.auth.api.deviceCode({ body: { client_id: clientId } });
    const userCode = shownUserCode(made.user_code);
    const complete = new URL(made.verification_uri);
    complete.searchParams.set('user_code', userCode);
    return {
      deviceCode: sealDeviceCode(this.#parts.keys(), made.device_code),
      userCode,
      verificationUri: made.verification_uri,
      verificationUriComplete: complete.href,
      expiresInSeconds: made.expires_in,
      intervalSeconds: made.interval,
    };
  }

  async redeem(
    { deviceCode, clientId }: { deviceCode: string; clientId: string },
    caller: Caller,
  ): Promise<ClientRefreshed> {
    const stored = openDeviceCode(this.#parts.keys(), deviceCode);
    if (stored === null) throw new DeviceRefusal('invalid_grant', 'this device code is unknown or incomplete');
    const approval = await findApproval(this.#parts.db, stored);
    try {
      const { access_token: token } = await this.#parts.library.auth.api.deviceToken({
        body: { grant_type: DEVICE_GRANT, device_code: stored, client_id: clientId },
        headers: callerHeaders(caller),
      });
      const login = await this.#parts.logins.begun(await this.#parts.library.credentialOf(token));
      // A concurrent password change withdraws the approval, but this sign-in session may have been
      // created just after that, so check again. Without an earlier approval, the approval was
      // given a moment ago.
      if (approval !== undefined && !(await isPassword(this.#parts.db, login.userId, approval.passwordHash))) {
        await this.#parts.logins.end(login.loginId);
        throw new DeviceRefusal('access_denied', 'a new password revoked the approval; restart the sign-in');
      }
      if (approval?.viaSso === true) await markSso(this.#parts.db, login.loginId);
      return await this.#parts.logins.forClient(login);
    } catch (error) {
      throw deviceRefusal(error) ?? error;
    }
  }
}

/** Maps the library's refusal of a poll to OAuth's error codes. */
function deviceRefusal(error: unknown): DeviceRefusal | null {
  if (!isAPIError(error)) return null;
  const { error: code, error_description: message } = (error.body ?? {}) as {
    error?: string;
    error_description?: string;
  };
  const known: readonly DeviceRefusalCode[] = [
    'authorization_pending',
    'slow_down',
    'access_denied',
    'expired_token',
    'invalid_grant',
  ];
  const found = known.find((refusal) => refusal === code);
  return found === undefined ? null : new DeviceRefusal(found, message ?? found);
}
