// Parts of every page, for one import.
export { Button, buttonClass } from '../button.tsx';
export { Bars, Share } from '../charts/bars.tsx';
export { useNow, useSeconds } from '../clock.ts';
export { Snippets } from '../code/snippets.tsx';
export { CopyValue } from '../copy.tsx';
export { DialogHost, useDialogHost } from '../dialog-host.tsx';
export { Dialog, Modal } from '../dialog.tsx';
export { Facts } from '../facts.tsx';
export { useWide } from '../media.ts';
export { Menu, MenuChoice, MenuList } from '../menu.tsx';
export { More } from '../more.tsx';
export { Page, Section, setTitle } from '../page.tsx';
export { Below, Records, type Column, type Columns } from '../records/records.tsx';
export { Alert, Failure, Loading, Notice } from '../states.tsx';
export { Status, Tick } from '../status.tsx';
export { Time } from '../time.tsx';
export { toast, Toasts } from '../toasts.tsx';
export { Untrusted } from '../untrusted.tsx';
