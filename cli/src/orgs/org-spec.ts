// `berth org`.
import { machineHours } from '../program/option-values.ts';
import type { CommandSpec, GroupSpec, OptionSpec } from '../program/command-spec.ts';

const ROLES = ['owner', 'admin', 'member', 'operator', 'viewer'] as const;
const YES: OptionSpec = { flags: '-y, --yes', about: 'do not ask' };
const MEMBER = { name: '<user>', about: 'id or email address of a member' };

const caps: CommandSpec = {
  name: 'caps',
  summary: 'show or set how many machine hours a billing period may use',
  details: 'Without options it shows them. What was used: berth usage.',
  options: [
    { flags: '--machine-hours <hours>', about: "the org's own cap; none: that of the plan", parse: machineHours },
    { flags: '--overage <on|off>', about: 'whether work goes on beyond the cap', choices: ['on', 'off'] },
  ],
  examples: [
    'berth org caps',
    'berth org caps --machine-hours 500 --overage off',
    'berth org caps --machine-hours none',
  ],
  load: async () => (await import('./caps.ts')).orgCaps,
};

export const orgGroup: GroupSpec = {
  name: 'org',
  summary: 'your orgs, their members and invitations',
  commands: [
    {
      name: 'ls',
      summary: 'list the orgs that you belong to',
      examples: ['berth org ls'],
      load: async () => (await import('./orgs.ts')).listOrgs,
    },
    {
      name: 'use',
      summary: 'use an org from now on, where neither --org nor BERTH_ORG_ID names one',
      arguments: [{ name: '<org>', about: 'id or name' }],
      examples: ['berth org use org_uodiunxlni4uyqmllemsqh4l', 'berth org use "Our platform"'],
      json: false,
      load: async () => (await import('./orgs.ts')).useOrg,
    },
    {
      name: 'create',
      summary: 'make an org whose owner is you, and print its id',
      arguments: [{ name: '<name>', about: 'of the org' }],
      examples: ['berth org create "Our platform"'],
      load: async () => (await import('./orgs.ts')).createOrg,
    },
    {
      name: 'members',
      summary: 'list the members, the longest-standing first',
      examples: ['berth org members', "berth org members --json | jq -r '.members[].email'"],
      load: async () => (await import('./members.ts')).listMembers,
    },
    {
      name: 'set-role',
      summary: "change a member's role",
      arguments: [MEMBER, { name: '<role>', about: 'the new one', choices: ROLES }],
      examples: ['berth org set-role ada@example.com admin'],
      load: async () => (await import('./members.ts')).setRole,
    },
    {
      name: 'remove-member',
      summary: 'end a membership',
      arguments: [MEMBER],
      options: [YES],
      examples: ['berth org remove-member ada@example.com'],
      load: async () => (await import('./members.ts')).removeMember,
    },
    {
      name: 'leave',
      summary: 'end your own membership of an org',
      arguments: [{ name: '<org>', about: 'id' }],
      options: [YES],
      examples: ['berth org leave org_uodiunxlni4uyqmllemsqh4l'],
      load: async () => (await import('./orgs.ts')).leaveOrg,
    },
    {
      name: 'invite',
      summary: "invite somebody by email, and print the invitation's id",
      arguments: [{ name: '<email>', about: 'address that the link is mailed to' }],
      options: [{ flags: '--role <role>', about: 'role in the org (default: member)', choices: ROLES }],
      examples: ['berth org invite ada@example.com --role admin'],
      load: async () => (await import('./invitations.ts')).invite,
    },
    {
      name: 'invitations',
      summary: 'list the pending invitations, newest first',
      examples: ['berth org invitations'],
      load: async () => (await import('./invitations.ts')).listInvitations,
    },
    {
      name: 'revoke-invitation',
      summary: 'take a pending invitation back',
      arguments: [{ name: '<invitation>', about: 'id' }],
      examples: ['berth org revoke-invitation inv_uodiunxlni4uyqmllemsqh4l'],
      load: async () => (await import('./invitations.ts')).revokeInvitation,
    },
    caps,
  ],
};
