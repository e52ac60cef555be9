// An authenticator in software, for signatures that no browser would make.
import { createHash, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto';

/** CBOR of a COSE key: EC2, ES256, P-256, followed by x; then the head of y. */
const COSE_HEAD = Buffer.from('a5010203262001215820', 'hex');
const COSE_Y = Buffer.from('225820', 'hex');
const PRESENT = 0x01;
const VERIFIED = 0x04;

export interface Signed {
  challenge: string;
  origin: string;
  rpId: string;
  counter?: number;
  verified?: boolean;
  type?: string;
}

export class Authenticator {
  readonly id = randomBytes(16).toString('base64url');
  readonly publicKey: Buffer;
  readonly #privateKey: KeyObject;

  constructor() {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#privateKey = pair.privateKey;
    const { x = '', y = '' } = pair.publicKey.export({ format: 'jwk' });
    this.publicKey = Buffer.concat([COSE_HEAD, Buffer.from(x, 'base64url'), COSE_Y, Buffer.from(y, 'base64url')]);
  }

  /** A credential for `POST /passkey`. */
  use({ challenge, origin, rpId, counter = 0, verified = true, type = 'webauthn.get' }: Signed): string {
    const clientData = Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    const flags = Buffer.of(PRESENT | (verified ? VERIFIED : 0));
    const data = Buffer.concat([createHash('sha256').update(rpId).digest(), flags, count]);
    const signature = sign(
      'sha256',
      Buffer.concat([data, createHash('sha256').update(clientData).digest()]),
      this.#privateKey,
    );
    return JSON.stringify({
      id: this.id,
      rawId: this.id,
      type: 'public-key',
      clientExtensionResults: {},
      response: {
        clientDataJSON: clientData.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: signature.toString('base64url'),
      },
    });
  }
}
