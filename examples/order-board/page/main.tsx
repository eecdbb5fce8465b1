import { createRoot } from 'react-dom/client'
import { Board, loadOrders } from './board.tsx'

createRoot(document.querySelector('#root')!).render(<Board {...(await loadOrders())} />)
