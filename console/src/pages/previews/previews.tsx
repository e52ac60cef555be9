// Tab of a sandbox: its preview links.
import { useInfiniteQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState, type ReactNode } from 'react';
import type { api } from '@berth/sdk';
import { END_USER_ID_CHARACTERS, PORT, PREVIEW_LABEL_CHARACTERS, PREVIEW_SECONDS } from '@berth/sdk/limits';
import { createPreview, previewsQuery, revokePreview } from '../../queries/previews.ts';
import { visibleText } from '../../rules/visible-text.ts';
import { previewsText as text } from '../../text/previews.ts';
import { Check, Choices, DialogForm, SelectField, TextField, useForm } from '../../ui/forms/index.ts';
import { Below, Button, Notice, Records, Time, Untrusted, type Columns } from '../../ui/kit/index.ts';
import { Loaded, Permitted } from '../frame/content.tsx';
import { useSandboxInView } from '../sandboxes/in-view.tsx';
import { PreviewLink } from './link.tsx';
import css from './previews.module.css';

const columnsOf = (refusal: string | null): Columns<api.Preview> => [
  {
    name: text.columns.port,
    cell: ({ port, label, embeddable }) => (
      <>
        {text.portOf(port)}
        <Below text={label} />
        {embeddable ? <Below>{text.embeddable}</Below> : null}
      </>
    ),
  },
  { name: text.columns.link, cell: (preview) => <PreviewLink preview={preview} refusal={refusal} /> },
  { name: text.endUser.label, quiet: true, cell: ({ endUserId }) => <Untrusted text={endUserId} absent={text.none} /> },
  { name: text.columns.used, quiet: true, cell: ({ lastUsedAt }) => <Time at={lastUsedAt} absent={text.unused} /> },
  { name: text.columns.expires, quiet: true, cell: ({ expiresAt }) => <Time at={expiresAt} ahead /> },
];

const EMPTY = (
  <Notice title={text.empty} hint={text.emptyHint}>
    <code>{text.command}</code>
  </Notice>
);

export function PreviewsPage() {
  return (
    <Permitted permission="sandbox.preview">
      <Previews />
    </Permitted>
  );
}

function Previews() {
  const { sandbox, refusalOf } = useSandboxInView();
  const [created, setCreated] = useState<api.Preview | null>(null);
  const refusal = refusalOf('sandbox.preview.share');
  const revocationOf = ({ id, port }: api.Preview): ReactNode => (
    <DialogForm danger words={text.revokeWords(port)} send={() => revokePreview(sandbox.id, id ?? '')} />
  );
  return (
    <>
      <div className={css.head}>
        <p>{text.hint}</p>
        <Button kind="primary" icon={Plus} dialog={<CreateDialog onCreated={setCreated} />}>
          {text.createWords.submit}
        </Button>
      </div>
      <output>{created === null ? null : <Created preview={created} onDone={() => setCreated(null)} />}</output>
      <Loaded query={useInfiniteQuery(previewsQuery(sandbox.id))} rows={3} empty={EMPTY}>
        {(previews) => (
          <Records
            label={text.label}
            records={previews}
            keyOf={({ id, url }) => id ?? url ?? ''}
            columns={columnsOf(refusal)}
            renderActions={(preview) => (
              <Button
                kind="danger"
                reason={refusal}
                aria-label={text.revokeOf(preview.port, preview.label === null ? null : visibleText(preview.label))}
                dialog={revocationOf(preview)}
              >
                {text.revoke}
              </Button>
            )}
          />
        )}
      </Loaded>
    </>
  );
}

function Created({ preview, onDone }: { preview: api.Preview; onDone: () => void }) {
  return (
    <div className={css.created}>
      <strong>{text.created[preview.audience] ?? preview.audience}</strong>
      {preview.id === null ? <p>{text.createdTeam}</p> : null}
      <PreviewLink preview={preview} refusal={null} />
      <p>
        <Button onClick={onDone}>{text.done}</Button>
      </p>
    </div>
  );
}

const AUDIENCES = (['team', 'public'] as const).map((value) => ({ value, ...text.audiences[value] }));
const PORTS = { min: PORT.min, max: PORT.max };
const FIRST = {
  port: '',
  audience: 'team' as api.PreviewAudience,
  expiresInSeconds: String(PREVIEW_SECONDS.default),
  label: '',
  endUserId: '',
  embeddable: false,
};

function CreateDialog({ onCreated }: { onCreated: (preview: api.Preview) => void }) {
  const { sandbox, refusalOf } = useSandboxInView();
  const form = useForm(FIRST);
  const { field } = form;
  const { audience, embeddable, ...values } = form.values;
  const given = Object.entries({ label: values.label.trim(), endUserId: values.endUserId.trim() });
  const body = {
    audience,
    port: Number(values.port),
    expiresInSeconds: Number(values.expiresInSeconds),
    ...Object.fromEntries(given.filter(([, value]) => value !== '')),
    ...(embeddable ? { embeddable } : {}),
  };
  return (
    <DialogForm
      words={text.createWords}
      form={form}
      reason={audience === 'public' ? refusalOf('sandbox.preview.share') : null}
      send={() => createPreview(sandbox.id, body)}
      onDone={onCreated}
    >
      <TextField
        label={text.columns.port}
        hint={text.portHint}
        type="number"
        required
        step={1}
        {...PORTS}
        {...field('port')}
      />
      <Choices legend={text.audience} choices={AUDIENCES} {...field('audience')} />
      <SelectField label={text.lifetime} options={text.lifetimes} {...field('expiresInSeconds')} />
      <details className={css.more}>
        <summary>{text.more}</summary>
        <div>
          <TextField {...text.name} maxLength={PREVIEW_LABEL_CHARACTERS} {...field('label')} />
          <TextField {...text.endUser} maxLength={END_USER_ID_CHARACTERS} {...field('endUserId')} />
          <Check label={text.embed} {...field('embeddable')} />
        </div>
      </details>
    </DialogForm>
  );
}
