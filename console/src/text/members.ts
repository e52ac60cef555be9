// Texts of members and invitations.
import type { Role } from '../rules/members.ts';

const ROLES: Readonly<Record<Role, { label: string; detail: string }>> = {
  owner: { label: 'Owner', detail: 'everything, including owners' },
  admin: { label: 'Admin', detail: 'everything, except owners' },
  member: { label: 'Member', detail: 'all projects and sandboxes' },
  operator: { label: 'Operator', detail: 'sandboxes, without public links' },
  viewer: { label: 'Viewer', detail: 'reads, and opens team links' },
};

export const membersText = {
  title: 'Members',
  columns: { name: 'Name', role: 'Role', joined: 'Joined' },
  role: (role: string) => (ROLES as Readonly<Record<string, { label: string }>>)[role]?.label ?? role,
  roleDetail: (role: Role) => ROLES[role].detail,
  you: '(you)',
  change: 'Change role',
  changeOf: (name: string) => `Change role of ${name}`,
  changeWords: (name: string, role: string) => ({
    title: `Role of ${name}`,
    hint: 'It takes effect with the next request.',
    submit: 'Change role',
    failed: 'The role was not changed',
    done: `${name} is now ${role}`,
  }),
  remove: 'Remove',
  removeOf: (name: string) => `Remove ${name}`,
  removeWords: (name: string) => ({
    title: `Remove ${name}?`,
    hint: 'API keys, agent tokens and public links of the person stop working in this org at once.',
    submit: 'Remove member',
    failed: 'The member was not removed',
    done: `${name} is no longer a member`,
  }),
  leave: 'Leave',
  leaveWords: {
    title: 'Leave this org?',
    hint: 'Your API keys and public links stop working in it at once. A member must invite you to return.',
    submit: 'Leave org',
    failed: 'You did not leave the org',
    done: 'You left the org',
  },
  lastOwner: 'The org needs an owner: make another member an owner first.',
  invite: 'Invite',
  inviteWords: (email: string) => ({
    title: 'Invite a person',
    hint: 'The link in the mail makes the person a member. A pending invitation of the address is replaced.',
    submit: 'Send invitation',
    failed: 'The invitation was not sent',
    done: `${email} is invited`,
  }),
  email: 'Email address',
  invitations: 'Pending invitations',
  noInvitations: 'None.',
  invitation: { email: 'Address', role: 'Role', by: 'Invited by', sent: 'Mail', expires: 'Expires' },
  unsent: 'not sent yet',
  sent: 'sent',
  deleted: 'deleted account',
  revoke: 'Revoke',
  revokeOf: (email: string) => `Revoke the invitation of ${email}`,
  revokeWords: (email: string) => ({
    title: `Revoke the invitation of ${email}?`,
    hint: 'The link in the mail stops working.',
    submit: 'Revoke invitation',
    failed: 'The invitation was not revoked',
    done: `The invitation of ${email} is revoked`,
  }),
} as const;
