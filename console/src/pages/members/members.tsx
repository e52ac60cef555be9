// Members of an org, and pending invitations.
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { UserPlus } from 'lucide-react';
import type { ReactNode } from 'react';
import type { api } from '@berth/sdk';
import { invitationsQuery, membersQuery, removeMember, revokeInvitation } from '../../queries/members.ts';
import { meQuery } from '../../queries/orgs.ts';
import { rolesThatMay } from '../../rules/access.ts';
import { possibilityToChange } from '../../rules/members.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { en } from '../../text/en.ts';
import { membersText as text } from '../../text/members.ts';
import { DialogForm } from '../../ui/forms/index.ts';
import { Below, Button, Page, Records, Section, Time, Untrusted, type Columns } from '../../ui/kit/index.ts';
import { Loaded, useOrgInView } from '../frame/content.tsx';
import { InviteDialog, LeaveDialog, RoleDialog } from './dialogs.tsx';
import { MemberName } from './member-name.tsx';
import css from './members.module.css';

export function MembersPage() {
  const { orgId, refusalOf } = useOrgInView();
  return (
    <Page
      title={text.title}
      actions={
        <Button kind="primary" icon={UserPlus} reason={refusalOf('org.members.manage')} dialog={<InviteDialog />}>
          {text.invite}
        </Button>
      }
    >
      <Loaded query={useQuery(membersQuery(orgId))}>{(members) => <Members members={members} />}</Loaded>
      <Invitations />
    </Page>
  );
}

function Members({ members }: { members: readonly api.Member[] }) {
  const { orgId, org } = useOrgInView();
  const { data: me } = useQuery(meQuery);
  const why = (member: api.Member, leaves: boolean): string | null => {
    if (org === undefined) return null;
    const possibility = possibilityToChange(member, members, org, leaves);
    if (possibility.kind === 'possible') return null;
    if (possibility.kind === 'last-owner') return text.lastOwner;
    return en.actions.forbidden(possibility.permission, rolesThatMay(possibility.permission));
  };
  const removalOf = (member: api.Member, name: string): ReactNode => (
    <DialogForm danger words={text.removeWords(name)} send={() => removeMember(orgId, member.userId)} />
  );
  return (
    <Records
      label={text.title}
      records={members}
      keyOf={({ userId }) => userId}
      columns={columnsOf(me?.id)}
      renderActions={(member) => {
        const name = visibleText(shownName(member));
        const own = member.userId === me?.id;
        return (
          <>
            <Button
              reason={why(member, false)}
              aria-label={text.changeOf(name)}
              dialog={<RoleDialog member={member} name={name} />}
            >
              {text.change}
            </Button>
            <Button
              kind="danger"
              reason={why(member, own)}
              aria-label={own ? text.leave : text.removeOf(name)}
              dialog={own ? <LeaveDialog /> : removalOf(member, name)}
            >
              {own ? text.leave : text.remove}
            </Button>
          </>
        );
      }}
    />
  );
}

const shownName = ({ displayName, email, userId }: api.Member): string => displayName ?? email ?? userId;

const columnsOf = (ownId: string | undefined): Columns<api.Member> => [
  {
    name: text.columns.name,
    cell: (member) => (
      <>
        <Untrusted text={shownName(member)} />
        {member.userId === ownId ? ` ${text.you}` : null}
        <Below text={member.displayName === null ? null : member.email} />
      </>
    ),
  },
  { name: text.columns.role, cell: ({ role }) => <Untrusted text={text.role(role)} /> },
  { name: text.columns.joined, quiet: true, cell: ({ joinedAt }) => <Time at={joinedAt} /> },
];

function Invitations() {
  const { org, refusalOf } = useOrgInView();
  const refusal = refusalOf('org.members.manage');
  return (
    <Section title={text.invitations}>
      {refusal === null ? org && <List /> : <p className={css.quiet}>{refusal}</p>}
    </Section>
  );
}

function List() {
  const { orgId } = useOrgInView();
  const query = useInfiniteQuery(invitationsQuery(orgId));
  return (
    <Loaded query={query} rows={2} empty={<p className={css.quiet}>{text.noInvitations}</p>}>
      {(invitations) => (
        <Records
          label={text.invitations}
          records={invitations}
          keyOf={({ id }) => id}
          columns={COLUMNS}
          renderActions={({ id, email }) => {
            const shown = visibleText(email);
            const dialog = (
              <DialogForm danger words={text.revokeWords(shown)} send={() => revokeInvitation(orgId, id)} />
            );
            return (
              <Button kind="danger" aria-label={text.revokeOf(shown)} dialog={dialog}>
                {text.revoke}
              </Button>
            );
          }}
        />
      )}
    </Loaded>
  );
}

const COLUMNS: Columns<api.Invitation> = [
  { name: text.invitation.email, cell: ({ email }) => <Untrusted text={email} /> },
  { name: text.invitation.role, cell: ({ role }) => <Untrusted text={text.role(role)} /> },
  { name: text.invitation.by, quiet: true, cell: ({ invitedBy }) => <MemberName id={invitedBy} /> },
  {
    name: text.invitation.sent,
    quiet: true,
    cell: ({ sentAt }) => (
      <>
        {sentAt === null ? null : text.sent} <Time at={sentAt} absent={text.unsent} />
      </>
    ),
  },
  { name: text.invitation.expires, quiet: true, cell: ({ expiresAt }) => <Time at={expiresAt} ahead /> },
];
