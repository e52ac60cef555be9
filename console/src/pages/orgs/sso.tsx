// Single sign-on of an org: the requirement and its mail domains.
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { api } from '@berth/sdk';
import { claimDomain, removeDomain, requireSso, ssoQuery, verifyDomain } from '../../queries/sso.ts';
import { settingsText } from '../../text/settings.ts';
import { CallButton, DialogForm, InlineForm, TextField, useCall, useForm } from '../../ui/forms/index.ts';
import { Alert, Button, CopyValue, Records, Time, toast, type Columns } from '../../ui/kit/index.ts';
import { Loaded, useOrgInView } from '../frame/content.tsx';
import css from './home.module.css';

const text = settingsText.sso;

export function Sso() {
  const { orgId } = useOrgInView();
  return (
    <Loaded query={useQuery(ssoQuery(orgId))} rows={3}>
      {({ required, domains }) => (
        <>
          <p>{required ? text.required : text.notRequired}</p>
          <CallButton
            reason={required || domains.some(({ verified }) => verified) ? null : text.noProof}
            failed={text.changeFailed}
            run={() => requireSso(orgId, !required)}
          >
            {required ? text.allow : text.require}
          </CallButton>
          {domains.length === 0 ? <p>{text.none}</p> : <Domains domains={domains} />}
          <Claim />
        </>
      )}
    </Loaded>
  );
}

function Domains({ domains }: { domains: readonly api.OrgDomain[] }) {
  const { orgId } = useOrgInView();
  const call = useCall();
  const [verified, setVerified] = useState<api.OrgDomain | null>(null);
  const verify = (one: api.OrgDomain): void => {
    setVerified(one);
    call.run(
      () => verifyDomain(orgId, one.id),
      () => toast(text.verified),
    );
  };
  return (
    <>
      <Alert title={text.verifyFailed(verified?.domain ?? '')} error={call.error} />
      <Records
        label={text.domains}
        records={domains}
        keyOf={({ id }) => id}
        columns={COLUMNS}
        renderActions={(one) => (
          <>
            {one.verified ? null : (
              <Button
                aria-label={text.verifyOf(one.domain)}
                busy={call.isPending && verified?.id === one.id}
                onClick={() => verify(one)}
              >
                {text.verify}
              </Button>
            )}
            <Button
              kind="danger"
              aria-label={text.removeOf(one.domain)}
              dialog={
                <DialogForm danger words={text.removeWords(one.domain)} send={() => removeDomain(orgId, one.id)} />
              }
            >
              {text.remove}
            </Button>
          </>
        )}
      />
    </>
  );
}

const COLUMNS: Columns<api.OrgDomain> = [
  { name: text.columns.domain, cell: ({ domain }) => domain },
  {
    name: text.columns.state,
    cell: ({ expiresAt }) => (
      <>
        {expiresAt === null ? null : text.unproven} <Time at={expiresAt} ahead absent={text.proven} />
      </>
    ),
  },
  {
    name: text.columns.record,
    cell: ({ record }) => (
      <>
        <CopyValue value={record.name} what={text.recordName} />{' '}
        <CopyValue value={record.value} what={text.recordValue} />
      </>
    ),
  },
];

function Claim() {
  const { orgId } = useOrgInView();
  const form = useForm({ domain: '' });
  const field = form.field('domain', 'body.domain');
  const claim = (): Promise<unknown> => claimDomain(orgId, form.values.domain);
  return (
    <InlineForm
      className={css.form}
      failed={text.claimFailed}
      error={field.error === undefined ? form.error : null}
      submit={text.claim}
      busy={form.isPending}
      onSubmit={() => form.run(claim, () => form.set({ domain: '' }))}
    >
      <TextField {...text.domain} required {...field} />
    </InlineForm>
  );
}
