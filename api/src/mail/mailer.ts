// Sends mail: through an SMTP server, or, without one, as files into an outbox folder that the operator can read.
import { randomBytes } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { createTransport } from 'nodemailer';
import type { Logger } from 'pino';
import type { MailConfig } from '../config.ts';
import type { Mailer } from '../services/mail-port.ts';

const SMTP_DEADLINE_MS = 20_000;

export function openMailer(config: MailConfig, log: Logger): Mailer {
  return config.kind === 'smtp' ? smtpMailer(config) : outboxMailer(config, log);
}

function smtpMailer({ url, from }: Extract<MailConfig, { kind: 'smtp' }>): Mailer {
  const transport = createTransport(url, { from });
  return {
    send: async (message) => {
      const sending = transport.sendMail(message);
      const late = AbortSignal.timeout(SMTP_DEADLINE_MS);
      const cut = new Promise<never>((_resolve, reject) =>
        late.addEventListener('abort', () =>
          reject(new Error(`the mail server did not take the message within ${SMTP_DEADLINE_MS / 1_000} s`)),
        ),
      );
      await Promise.race([sending, cut]);
    },
  };
}

function outboxMailer({ folder, from }: Extract<MailConfig, { kind: 'outbox' }>, log: Logger): Mailer {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: 'unix' }, { from });
  const place = resolve(folder);
  return {
    send: async (message) => {
      const { message: content } = (await transport.sendMail(message)) as unknown as { message: Buffer };
      await mkdir(place, { recursive: true, mode: 0o700 });
      const name = `${new Date().toISOString().replaceAll(':', '')}-${randomBytes(4).toString('hex')}.eml`;
      // Whole or not at all.
      await writeFile(join(place, `.${name}`), content, { mode: 0o600 });
      await rename(join(place, `.${name}`), join(place, name));
      log.info({ file: join(place, name) }, 'there is no mail server: the message lies in the outbox folder');
    },
  };
}
