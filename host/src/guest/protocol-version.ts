// Compatibility of this host with the guest daemon of an image.
import { PROTOCOL_VERSION } from '@berth/protocol/guest-limits.ts';
import { DriverError } from '../vm/driver.ts';

/**
 * Throws {@link DriverError} for a guest daemon newer than this host, whose responses it might take
 * for something else.
 * @param version undefined for daemons up to version 6, which do not report theirs
 */
export function assertSpoken(version: number | undefined, guest: string): void {
  if (version !== undefined && version > PROTOCOL_VERSION) {
    throw new DriverError(
      `${guest} speaks version ${version} of the guest protocol; this host speaks versions up to ` +
        `${PROTOCOL_VERSION}: upgrade the host`,
    );
  }
}
