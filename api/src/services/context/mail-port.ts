// What services need of mail. Types only; src/mail implements it.

export interface MailMessage {
  /** One address. */
  to: string;
  subject: string;
  text: string;
  html: string;
}

export interface Mailer {
  /**
   * Resolves when the mail server took the message, or it lies in the outbox folder. Throws when
   * neither worked. Never logs the message.
   */
  send(message: MailMessage, signal?: AbortSignal): Promise<void>;
}
