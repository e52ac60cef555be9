// A message as the mail library takes it, however it is sent.
import type { MailMessage } from '../services/context/mail-port.ts';

/** What is mailed of a message; the sender is the transport's. */
export function composed({ to, subject, text, html }: MailMessage) {
  return {
    // As an object: the address is taken as it is, and not read as a list of addresses.
    to: { name: '', address: to },
    subject,
    text,
    html,
    // RFC 3834: nobody's absence note answers it.
    headers: { 'Auto-Submitted': 'auto-generated' },
    // Text is text: nothing in it makes this process read a file or a URL.
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}
