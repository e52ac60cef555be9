// Sends mail: through an SMTP server, or, without one, as files into an outbox folder that the
// operator can read. What it logs and throws says where a message went, never what is in it or to
// whom it is: messages hold tokens.
import type { Logger } from 'pino';
import type { MailConfig } from '../config/config.ts';
import type { Mailer } from '../services/context/mail-port.ts';
import { outboxMailer } from './outbox.ts';
import { smtpMailer } from './smtp.ts';

/** How long a mail server may take with one message, from the dial to its last word. */
const DEADLINE_MS = 20_000;

/**
 * Opens the configured way. Nothing is dialled or written before the first message. Throws when the
 * configuration cannot be used.
 */
export function openMailer(
  config: MailConfig,
  log: Logger,
  { deadlineMs = DEADLINE_MS }: { deadlineMs?: number } = {},
): Mailer {
  return config.kind === 'smtp' ? smtpMailer(config, log, deadlineMs) : outboxMailer(config, log);
}
