// The mail of an invitation: its text, its token, and the record that it was sent. The token exists
// in the message alone; only its hash is stored. workers/orgs/invitation-mail.ts is the durable
// step that sends it.
import { html } from '../../rules/html.ts';
import { insertActivity } from '../../store/activity/activity.ts';
import { markSent, writeInvitationToken, type InvitationForMail } from '../../store/orgs/invitations.ts';
import type { DatabaseTransaction } from '../../store/database/schema.ts';
import { activityFieldsOf } from './invitations.ts';
import type { MailMessage } from '../context/mail-port.ts';
import { linkTokenSha256, newLinkToken } from '../access/one-time-links.ts';

interface PreparedMail {
  message: MailMessage;
  /** Identifies the message's token among earlier and later ones. */
  tokenSha256: Buffer;
}

/**
 * Prepares a message with a new token, the only valid one from the commit on. null if the
 * invitation awaits no mail: it is not pending, or its mail was sent.
 */
export async function prepareInvitationMail(
  trx: DatabaseTransaction,
  publicUrl: string,
  invitationId: string,
): Promise<PreparedMail | null> {
  const token = newLinkToken();
  const tokenSha256 = linkTokenSha256(token);
  const invitation = await writeInvitationToken(trx, invitationId, tokenSha256);
  if (invitation === undefined) return null;
  return { message: messageOf(invitation, `${publicUrl}/invitation?token=${token}`), tokenSha256 };
}

/** Records the message with this token as sent; false if already recorded or replaced. */
export async function recordInvitationSent(
  trx: DatabaseTransaction,
  invitationId: string,
  tokenSha256: Buffer,
): Promise<boolean> {
  const sent = await markSent(trx, invitationId, tokenSha256);
  if (sent === undefined) return false;
  const actor = { kind: 'system', id: null, userId: null } as const;
  await insertActivity(trx, { orgId: sent.org_id, actor, kind: 'invitation_sent', ...activityFieldsOf(sent) });
  return true;
}

interface Facts {
  /** The event, as a sentence without its full stop. */
  said: string;
  until: string;
  link: string;
}

function messageOf(invitation: InvitationForMail, link: string): MailMessage {
  const org = shownName(invitation.org_name);
  const inviter = shownName(invitation.inviter_name ?? '');
  const invited = inviter === '' ? 'You are invited to' : `${inviter} invites you to`;
  const article = /^[aeiou]/.test(invitation.role) ? 'an' : 'a';
  const facts = {
    said: `${invited} the org “${org}” as ${article} ${invitation.role}`,
    until: untilText(invitation.expires_at),
    link,
  };
  return {
    to: invitation.email,
    subject: `${invited} the org “${org}” on Berth`,
    text: textOf(facts),
    html: htmlOf(facts),
  };
}

const CLOSING = 'If you did not expect this, ignore this message: nothing happens unless you accept.';

function textOf({ said, until, link }: Facts): string {
  return `${said}.

To accept, open this link before ${until}:

${link}

It works once, and for this email address only.

${CLOSING}
`;
}

function htmlOf({ said, until, link }: Facts): string {
  return html`<!doctype html>
    <html lang="en">
      <body>
        <p>${said}.</p>
        <p>To accept, open this link before ${until}:</p>
        <p><a href="${link}">Accept the invitation</a></p>
        <p>${link}</p>
        <p>It works once, and for this email address only.</p>
        <p>${CLOSING}</p>
      </body>
    </html> `.toString();
}

/** Maximum length of a name in a mail: the operator sends it, and a tenant chooses the name. */
const NAME_CHARACTERS = 40;

/**
 * Makes an untrusted name one short line that cannot imitate a line of the message, and that no
 * mail program turns into a link.
 */
function shownName(name: string): string {
  const line = name.replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim();
  const characters = Array.from(new Intl.Segmenter('en').segment(line), ({ segment }) => segment);
  const short = characters.length <= NAME_CHARACTERS ? line : `${characters.slice(0, NAME_CHARACTERS - 1).join('')}…`;
  // A word joiner is invisible, and ends every host name and URL.
  return short.replaceAll(/(?<=\S)[.:@](?=\S)/gu, (mark) => `${mark}\u2060`);
}

function untilText(at: Date): string {
  const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
  return `${format.format(at)} UTC`;
}
