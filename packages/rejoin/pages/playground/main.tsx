import { createRoot } from 'react-dom/client'
import '../shared/theme.css'
import './playground.css'
import { Playground } from './playground.tsx'
import { startSession } from './session.ts'
import { takeTabName } from './tab-name.ts'

const root = createRoot(document.getElementById('root') as HTMLElement)
void takeTabName().then((tab) => root.render(<Playground session={startSession(tab)} />))
