// Mail without a mail server: one .eml file per message, in a folder readable only by the service
// user. For evaluation on one host, and for tests.
import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createTransport } from 'nodemailer';
import type { Logger } from 'pino';
import type { MailConfig } from '../config/config.ts';
import type { Mailer } from '../services/context/mail-port.ts';
import { composed } from './message.ts';

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

export function outboxMailer({ folder, from }: Extract<MailConfig, { kind: 'outbox' }>, log: Logger): Mailer {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: 'unix' }, { from });
  const place = resolve(folder);
  return {
    send: async (message, signal) => {
      signal?.throwIfAborted();
      const { message: content } = (await transport.sendMail(composed(message))) as { message: Buffer };
      await mkdir(place, { recursive: true, mode: FOLDER_MODE });
      // Sorts by time, newest last.
      const name = `${new Date().toISOString().replaceAll(':', '')}-${randomBytes(4).toString('hex')}.eml`;
      await writeWhole(place, name, content);
      log.info({ file: join(place, name) }, 'no mail server is configured: mail written to the outbox folder');
    },
  };
}

/** Writes the file atomically and durably: it is complete or absent, even after a power loss. */
async function writeWhole(folder: string, name: string, content: Buffer): Promise<void> {
  const unfinished = join(folder, `.${name}`);
  try {
    const file = await open(unfinished, 'wx', FILE_MODE);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, join(folder, name));
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
  const directory = await open(folder, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
