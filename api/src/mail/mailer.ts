// Sends mail through an SMTP server or, without one, into an outbox folder readable by the
// operator. Logs and errors name the destination server or folder, never recipient or content:
// messages hold tokens.
import type { Logger } from 'pino';
import type { MailConfig } from '../config/config.ts';
import type { Mailer } from '../services/context/mail-port.ts';
import { outboxMailer } from './outbox.ts';
import { smtpMailer } from './smtp.ts';

/** Timeout for one message, from dialling to the server's final reply. */
const DEADLINE_MS = 20_000;

/**
 * Opens the configured transport. Dials and writes nothing before the first message. Throws if the
 * configuration is unusable.
 */
export function openMailer(
  config: MailConfig,
  log: Logger,
  { deadlineMs = DEADLINE_MS }: { deadlineMs?: number } = {},
): Mailer {
  return config.kind === 'smtp' ? smtpMailer(config, log, deadlineMs) : outboxMailer(config, log);
}
