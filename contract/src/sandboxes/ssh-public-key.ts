// The schema of an OpenSSH public key line; ssh-key-line.ts validates the line.
import { z } from 'zod';
import { SSH_PUBLIC_KEY } from '../route/limits.ts';
import { PRIVATE_KEY, SSH_KEY_TYPES, sshPublicKeyFault } from './ssh-key-line.ts';

const PRIVATE_WARNING =
  'is a private key and was rejected. It has left your computer: treat it as compromised and replace it ' +
  'wherever it is used. ' +
  'Send the public key instead: one line, from the file whose name ends in .pub';

/**
 * Parses to the trimmed line. Rejects multiple lines, options, certificates, weak and unknown
 * types, and material that does not match its type.
 */
export const sshPublicKey = z
  .string()
  .max(SSH_PUBLIC_KEY.characters)
  .transform((text, context) => {
    const fault = PRIVATE_KEY.test(text) ? PRIVATE_WARNING : sshPublicKeyFault(text.trim());
    if (fault !== null) context.issues.push({ code: 'custom', input: text, message: fault });
    return text.trim();
  })
  .meta({
    writeOnly: true,
    description:
      'One OpenSSH public key line: `<key_type> <key_material> <comment>`, of one of the types ' +
      `${Object.keys(SSH_KEY_TYPES).join(', ')}. Its owner can sign in as \`berth\` over a tunnel to port 22.`,
  });
