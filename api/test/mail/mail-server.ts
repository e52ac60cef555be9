// Real SMTP server in the test's process, and access to the messages it accepted.
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';

interface ReceivedMail {
  from: string;
  to: string[];
  user: unknown;
  secure: boolean;
  /** Raw message with headers and encodings. */
  content: string;
}

export interface MailServer {
  port: number;
  received: ReceivedMail[];
  connections(): number;
  close(): Promise<void>;
}

/**
 * Starts a server with the behaviour of `options`; by default it accepts everything, without TLS.
 */
export async function startMailServer(options: SMTPServerOptions = {}, port = 0): Promise<MailServer> {
  const received: ReceivedMail[] = [];
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          user: session.user,
          secure: session.secure,
          content: Buffer.concat(chunks).toString(),
        });
        done();
      });
    },
    ...options,
  });
  // Some tests disconnect early.
  server.on('error', () => undefined);
  server.listen(port, '127.0.0.1');
  await once(server.server, 'listening');
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    connections: () => server.connections.size,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** Returns the link's token from a raw message, quoted-printable or plain. */
export function tokenInContent(content: string): string | undefined {
  const isQuoted = /^Content-Transfer-Encoding: quoted-printable\r?$/m.test(content);
  const text = isQuoted ? content.replaceAll(/=\r?\n/g, '').replaceAll('=3D', '=') : content;
  return /\?token=([\w-]{43})\r?$/m.exec(text)?.[1];
}
