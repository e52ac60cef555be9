// Mail through an SMTP server. Each message has a dedicated connection, closed on acceptance,
// rejection or timeout.
import { createTransport } from 'nodemailer';
import type { Logger } from 'pino';
import type { MailConfig } from '../config/config.ts';
import type { MailMessage, Mailer } from '../services/context/mail-port.ts';
import { composed } from './message.ts';

/** Timeout for the server to close its side of a finished connection. */
const CLOSE_MS = 1_000;
const MAX_ERROR_CHARACTERS = 300;

/** Commands before the message. Replies to them cannot quote the message. */
const BEFORE_DATA = /^(EHLO|HELO|STARTTLS|AUTH\b.*|MAIL FROM|RCPT TO)$/;

/** Reason of a failed delivery, without message, recipient or text quoted from the message. */
class MailError extends Error {
  override readonly name = 'MailError';
}

export function smtpMailer(
  { url, from }: Extract<MailConfig, { kind: 'smtp' }>,
  log: Logger,
  deadlineMs: number,
): Mailer {
  const server = readServer(url);
  const transport = createTransport({ url, requireTLS: server.requireTls, socketCloseTimeout: CLOSE_MS }, { from });
  return {
    send: async (message, signal) => {
      const late = AbortSignal.timeout(deadlineMs);
      try {
        await transport.sendMail({
          ...composed(message),
          signal: signal === undefined ? late : AbortSignal.any([signal, late]),
        });
      } catch (error) {
        signal?.throwIfAborted();
        if (late.aborted) {
          throw new MailError(
            `the mail server ${server.name} did not accept the message within ${deadlineMs / 1_000} s`,
          );
        }
        throw new MailError(
          `the mail server ${server.name} did not accept the message: ${reasonOf(error as SmtpFailure, message)}`,
        );
      }
      log.info({ server: server.name }, 'mail accepted by the mail server');
    },
  };
}

/** Throws without repeating the URL, which holds a password. */
function readServer(text: string): { name: string; requireTls: boolean } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^smtps?:$/.test(url.protocol) || url.hostname === '')
    throw new Error('invalid environment: BERTH_SMTP_URL: must be a URL smtp://user:password@host:port, or smtps://');

  const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  const setsTls = url.searchParams.has('requireTLS') || url.searchParams.has('ignoreTLS');
  return {
    name: url.host,
    // Prevents a STARTTLS downgrade, which would send the password in clear text.
    requireTls: url.protocol === 'smtp:' && url.username !== '' && !isLocal && !setsTls,
  };
}

/** nodemailer's error. */
interface SmtpFailure extends Error {
  code?: string;
  /** The server's reply, which the error message also ends with. */
  response?: string | false;
  responseCode?: number;
  command?: string;
}

function reasonOf(failure: SmtpFailure, { to }: MailMessage): string {
  const { message, response, responseCode, command } = failure;
  const quotes = typeof response === 'string' && response !== '' && !BEFORE_DATA.test(command ?? '');
  const own = quotes
    ? `${message.replaceAll(`: ${response}`, '')}${responseCode === undefined ? '' : ` (${responseCode})`}`
    : message;
  const shown = own
    .replaceAll(new RegExp(to.replaceAll(/\W/g, '\\$&'), 'gi'), 'the recipient')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .slice(0, MAX_ERROR_CHARACTERS);
  return command === undefined ? shown : `${shown} [${command}]`;
}
