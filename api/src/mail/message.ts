// Converts a message for the mail library, independent of the transport.
import type { MailMessage } from '../services/context/mail-port.ts';

/** Library options of a message; the transport adds the sender. */
export function composed({ to, subject, text, html }: MailMessage) {
  return {
    // An object keeps the library from parsing the address as a list.
    to: { name: '', address: to },
    subject,
    text,
    html,
    // RFC 3834: suppresses automatic replies.
    headers: { 'Auto-Submitted': 'auto-generated' },
    // Keeps message text from making this process read a file or URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
