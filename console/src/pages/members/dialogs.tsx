// Dialogs that change memberships.
import { useNavigate } from 'react-router';
import type { api, Role } from '@berth/sdk';
import { EMAIL_CHARACTERS } from '@berth/sdk/limits';
import { changeRole, invite, leaveOrg } from '../../queries/members.ts';
import { permissionToChange, ROLES } from '../../rules/members.ts';
import { PATHS } from '../../rules/paths.ts';
import { membersText as text } from '../../text/members.ts';
import { Choices, DialogForm, TextField, useForm } from '../../ui/forms/index.ts';
import { useOrgInView } from '../frame/content.tsx';

const CHOICES = ROLES.map((value) => ({ value, label: text.role(value), detail: [text.roleDetail(value)] }));

export function RoleDialog({ member, name }: { member: api.Member; name: string }) {
  const { orgId, refusalOf } = useOrgInView();
  const form = useForm({ role: ROLES.find((one) => one === member.role) ?? 'viewer' });
  const { role } = form.values;
  return (
    <DialogForm
      words={text.changeWords(name, text.role(role))}
      form={form}
      reason={refusalOf(permissionToChange(member.role, role))}
      send={() => changeRole(orgId, member.userId, role)}
    >
      <Choices legend={text.columns.role} choices={CHOICES} {...form.field('role')} />
    </DialogForm>
  );
}

export function LeaveDialog() {
  const { orgId } = useOrgInView();
  const navigate = useNavigate();
  const goHome = (): void => void navigate(PATHS.home, { replace: true });
  return <DialogForm danger words={text.leaveWords} send={() => leaveOrg(orgId)} onDone={goHome} />;
}

export function InviteDialog() {
  const { orgId, refusalOf } = useOrgInView();
  const form = useForm({ email: '', role: 'member' as Role });
  const { email, role } = form.values;
  return (
    <DialogForm
      words={text.inviteWords(email)}
      form={form}
      reason={refusalOf(permissionToChange(null, role))}
      send={() => invite(orgId, form.values)}
    >
      <TextField label={text.email} type="email" required maxLength={EMAIL_CHARACTERS} {...form.field('email')} />
      <Choices legend={text.columns.role} choices={CHOICES} {...form.field('role')} />
    </DialogForm>
  );
}
