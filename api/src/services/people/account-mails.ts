// Text of account mails. The mailer sends them.
import { ONE_TIME_LINK_MINUTES } from '@berth/contract/route/limits.ts';
import { html, type Html } from '../../rules/html.ts';
import type { MailMessage } from '../context/mail-port.ts';
import { oneTimeLinkPath } from '../access/one-time-links.ts';

/** @param publicUrl public origin of the service */
export function passwordResetMail(publicUrl: string, to: string, token: string): MailMessage {
  return mail(to, {
    subject: 'Choose a new password for Berth',
    why: `A new password was requested for the account ${to} at ${publicUrl}.`,
    link: publicUrl + oneTimeLinkPath('reset_password', token),
    action: 'Choose a new password',
    end:
      `The link works once, for ${ONE_TIME_LINK_MINUTES.reset_password} minutes. ` +
      'If you did not request it, do nothing: the password stays unchanged.',
  });
}

/** @param publicUrl public origin of the service */
export function emailVerificationMail(publicUrl: string, to: string, token: string): MailMessage {
  return mail(to, {
    subject: 'Confirm your email address for Berth',
    why: `An account at ${publicUrl} has the address ${to}. Confirm that it is yours.`,
    link: publicUrl + oneTimeLinkPath('verify_email', token),
    action: 'Confirm the address',
    end:
      `The link works once, for ${ONE_TIME_LINK_MINUTES.verify_email / 60} hours. ` +
      'If you have no account there, do nothing.',
  });
}

/** @param change starts the sentence that ends with the account */
export function accountNoticeMail(publicUrl: string, to: string, change: string): MailMessage {
  return mail(to, {
    subject: 'Your Berth account was changed',
    why: `${change} the account ${to} at ${publicUrl}.`,
    link: `${publicUrl}/account`,
    action: 'Check your account',
    end: 'If that was not you, choose a new password now: this ends every sign-in of your account.',
  });
}

interface Content {
  subject: string;
  why: string;
  link: string;
  action: string;
  end: string;
}

function mail(to: string, { subject, why, link, action, end }: Content): MailMessage {
  const body: Html = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${subject}</title>
      </head>
      <body style="font-family: system-ui, sans-serif; line-height: 1.5">
        <p>${why}</p>
        <p><a href="${link}">${action}</a></p>
        <p>If the link does not open, copy this address into your browser:<br />${link}</p>
        <p>${end}</p>
      </body>
    </html>`;
  return { to, subject, text: `${why}\n\n${action}:\n${link}\n\n${end}\n`, html: body.toString() };
}
