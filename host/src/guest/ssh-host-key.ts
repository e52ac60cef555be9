// An ed25519 key pair in OpenSSH's formats (PROTOCOL.key of openssh-portable: "openssh-key-v1",
// unencrypted). Node generates the key and only the container is written here, so no process is
// started.
import { generateKeyPairSync, randomBytes } from 'node:crypto';

interface SshHostKey {
  /** PEM-like text of the private key file. */
  privateKey: string;
  /** Single line: type, base64, comment. */
  publicKey: string;
}

const KEY_TYPE = 'ssh-ed25519';
/** Block size of the cipher "none". */
const BLOCK_BYTES = 8;
const LINE_CHARACTERS = 70;

export function makeSshHostKey(comment: string): SshHostKey {
  const jwk = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  if (jwk.d === undefined || jwk.x === undefined)
    throw new Error('an ed25519 key was exported without its private or public part');

  const seed = Buffer.from(jwk.d, 'base64url');
  const point = Buffer.from(jwk.x, 'base64url');
  const publicBlob = Buffer.concat([field(KEY_TYPE), field(point)]);

  // The same random number twice, as the format requires: OpenSSH detects a wrong passphrase by it.
  const check = randomBytes(4);
  const secret = Buffer.concat([
    check,
    check,
    field(KEY_TYPE),
    field(point),
    field(Buffer.concat([seed, point])),
    field(comment),
  ]);
  const padding = Buffer.from(
    Array.from({ length: (BLOCK_BYTES - (secret.length % BLOCK_BYTES)) % BLOCK_BYTES }, (_, index) => index + 1),
  );
  const container = Buffer.concat([
    Buffer.from('openssh-key-v1\0', 'latin1'),
    field('none'),
    field('none'),
    field(''),
    uint32(1),
    field(publicBlob),
    field(Buffer.concat([secret, padding])),
  ]);
  const lines = container.toString('base64').match(new RegExp(`.{1,${LINE_CHARACTERS}}`, 'g')) ?? [];
  return {
    privateKey: ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join('\n'),
    publicKey: `${KEY_TYPE} ${publicBlob.toString('base64')} ${comment}`,
  };
}

/** A length-prefixed string of the ssh wire. */
function field(content: string | Buffer): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content, 'utf8') : content;
  return Buffer.concat([uint32(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
