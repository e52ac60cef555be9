// Validation of an OpenSSH public key line, as `ssh-keygen` writes it to a .pub file: `<key_type>
// <key_material> <comment>`. The material is decoded, so that a truncated key fails here and not at
// the first sign-in. Messages never quote the input: it may be a private key. The SDK has a copy of
// this file (npm run sdk:generate), so it imports only limits.
import { SSH_PUBLIC_KEY } from '../route/limits.ts';

/** Field of a key's material, and how it is checked. */
type Part = 'ed25519' | 'exponent' | 'modulus' | 'application' | { curve: string } | { pointBytes: number };

const P256: readonly Part[] = [{ curve: 'nistp256' }, { pointBytes: 65 }];

/** Accepted key types. `sk-` keys are held by a hardware token. */
export const SSH_KEY_TYPES: Readonly<Record<string, readonly Part[]>> = {
  'ssh-ed25519': ['ed25519'],
  'ssh-rsa': ['exponent', 'modulus'],
  'ecdsa-sha2-nistp256': P256,
  'ecdsa-sha2-nistp384': [{ curve: 'nistp384' }, { pointBytes: 97 }],
  'ecdsa-sha2-nistp521': [{ curve: 'nistp521' }, { pointBytes: 133 }],
  'sk-ssh-ed25519@openssh.com': ['ed25519', 'application'],
  'sk-ecdsa-sha2-nistp256@openssh.com': [...P256, 'application'],
};

/**
 * Markers of private keys in the formats of OpenSSH, PEM, PKCS#8 and PuTTY. The last is the base64
 * of OpenSSH's header, for a key pasted without its frame.
 */
export const PRIVATE_KEY = /PRIVATE KEY|PuTTY-User-Key-File|Private-Lines|b3BlbnNzaC1rZXktdjE/;

/** The reason to reject the line; null if it is a usable public key. */
export function sshPublicKeyFault(line: string): string | null {
  if (/[\r\n]/.test(line)) return 'must be one line: one public key';
  if (/[\p{Cc}\p{Cs}]/u.test(line)) return 'must not contain control characters or lone surrogates';
  const [, type = '', material = '', comment = ''] = /^(\S*)(?: +(\S+))?(?: +(.*))?$/.exec(line) ?? [];
  const parts = SSH_KEY_TYPES[type];
  if (parts === undefined) return faultOfKind(type, line);
  if (comment.length > SSH_PUBLIC_KEY.commentCharacters)
    return `must have a comment of at most ${SSH_PUBLIC_KEY.commentCharacters} characters`;
  const bytes = decodeBase64(material);
  if (bytes === null) return `must have its key in base64 after ${type}; the key is truncated or damaged`;
  return faultOfMaterial(type, parts, new Material(bytes));
}

function faultOfKind(type: string, line: string): string {
  const kinds = Object.keys(SSH_KEY_TYPES).join(', ');
  if (type.endsWith('-cert-v01@openssh.com'))
    return `must be a public key, not a certificate; accepted types: ${kinds}`;
  const later = line.split(/[\s"]+/).some((word, index) => index > 0 && SSH_KEY_TYPES[word] !== undefined);
  if (later) return 'must begin with the key type: options before it are not accepted';
  if (type === 'ssh-dss') return `must not be a DSA key, which ssh servers no longer accept; accepted types: ${kinds}`;
  return `must be an OpenSSH public key, beginning with one of ${kinds}`;
}

function faultOfMaterial(type: string, parts: readonly Part[], material: Material): string | null {
  const broken = `must have a key of type ${type}; the key is truncated or damaged`;
  if (material.text() !== type) return broken;
  for (const part of parts) {
    const bytes = material.next();
    if (bytes === null) return broken;
    if (part === 'modulus') {
      const bits = bitsOf(bytes);
      if (bits === null) return broken;
      const { min, max } = SSH_PUBLIC_KEY.rsaBits;
      if (bits < min || bits > max) return `must have an RSA key of ${min} to ${max} bits, not ${bits}`;
    } else if (!isRight(part, bytes)) {
      return broken;
    }
  }
  return material.ended ? null : broken;
}

function isRight(part: Exclude<Part, 'modulus'>, bytes: Uint8Array): boolean {
  switch (part) {
    case 'ed25519':
      return bytes.length === 32;
    case 'exponent':
      // An odd number greater than one.
      return (
        bitsOf(bytes) !== null &&
        bytes.length <= 9 &&
        ((bytes.at(-1) ?? 0) & 1) === 1 &&
        (bytes.length > 1 || (bytes[0] ?? 0) > 1)
      );
    case 'application':
      return bytes.length > 0 && bytes.length <= 256;
    default:
      return 'curve' in part ? latin1(bytes) === part.curve : bytes.length === part.pointBytes && bytes[0] === 0x04;
  }
}

/** Bit length of a positive mpint (RFC 4251); null if it is not one. */
function bitsOf(bytes: Uint8Array): number | null {
  const [first, second = 0] = bytes;
  if (first === undefined || first >= 0x80) return null;
  // A leading zero byte is allowed only to keep the number positive.
  if (first === 0) return second >= 0x80 ? (bytes.length - 1) * 8 : null;
  return (bytes.length - 1) * 8 + (32 - Math.clz32(first));
}

/** Reads the length-prefixed fields of a key's material (RFC 4253). */
class Material {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get ended(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** Null when no complete field remains. */
  next(): Uint8Array | null {
    const view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength);
    if (this.#at + 4 > this.#bytes.length) return null;
    const from = this.#at + 4;
    const to = from + view.getUint32(this.#at);
    if (to > this.#bytes.length) return null;
    this.#at = to;
    return this.#bytes.subarray(from, to);
  }

  text(): string | null {
    const bytes = this.next();
    return bytes === null ? null : latin1(bytes);
  }
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

/** Null unless the text is canonical base64 with padding. */
function decodeBase64(text: string): Uint8Array | null {
  if (text.length === 0 || text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return null;
  const binary = atob(text);
  return btoa(binary) === text ? Uint8Array.from(binary, (character) => character.charCodeAt(0)) : null;
}
