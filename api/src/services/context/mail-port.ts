// Services' interface to mail. Types only; src/mail implements it.

export interface MailMessage {
  /** A single address. */
  to: string;
  subject: string;
  text: string;
  html: string;
}

export interface Mailer {
  /**
   * Resolves once the mail server accepted the message, or it is in the outbox folder. Throws if
   * neither succeeded. Never logs the message.
   */
  send(message: MailMessage, signal?: AbortSignal): Promise<void>;
}
