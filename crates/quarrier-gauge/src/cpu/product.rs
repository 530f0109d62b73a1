//! The product of two matrices, computed by a library: the rate of multiply-adds in a cache-aware
//! program. Each thread multiplies its own matrices.

use gemm_common::Parallelism;

use crate::error::{Error, Result};
use crate::reading::{Area, Parameters, Subject, Unit};
use crate::statistics::SplitMix;
use crate::trial::{Needs, Session, ThreadWork};

use super::Lane;

/// Two matrices of order `n`, their product, and a vector to check it with.
struct Matrices<T> {
    order: usize,
    left: Vec<T>,
    right: Vec<T>,
    product: Vec<T>,
    probe: Vec<f64>,
    /// The product of both matrices with the probe, computed differently: left · (right · probe).
    expected: Vec<f64>,
}

/// A type of number that the library multiplies.
trait Element: Copy + Default + Send + Sync + 'static {
    /// The distance from 1 to the next number.
    const EPSILON: f64;

    fn of(value: f64) -> Self;
    fn value(self) -> f64;

    /// Computes `product` = `left` · `right`, for `(rows, columns, inner dimension)`.
    ///
    /// # Safety
    /// Each matrix is a pointer with the strides of columns and rows, in numbers. `left` and
    /// `right` are readable, and `product` is writable, at every row and column that the dimensions
    /// name; nobody else accesses `product`.
    unsafe fn gemm(
        orders: (usize, usize, usize),
        product: Strided<*mut Self>,
        left: Strided<*const Self>,
        right: Strided<*const Self>,
    );
}

/// The first number, the distance to the next column, and the distance to the next row.
type Strided<P> = (P, isize, isize);

macro_rules! element {
    ($type:ty, $get:path) => {
        impl Element for $type {
            const EPSILON: f64 = <$type>::EPSILON as f64;

            fn of(value: f64) -> Self {
                value as $type
            }

            fn value(self) -> f64 {
                self as f64
            }

            unsafe fn gemm(
                (m, n, k): (usize, usize, usize),
                (product, columns, rows): Strided<*mut Self>,
                (left, left_columns, left_rows): Strided<*const Self>,
                (right, right_columns, right_rows): Strided<*const Self>,
            ) {
                let (is_read, is_conjugate) = (false, false);
                // SAFETY: the caller promises pointers and strides that cover the dimensions. The
                // library does not read `product`, since `is_read` is false.
                unsafe {
                    $get()(
                        m,
                        n,
                        k,
                        product,
                        columns,
                        rows,
                        is_read,
                        left,
                        left_columns,
                        left_rows,
                        right,
                        right_columns,
                        right_rows,
                        0.0,
                        1.0,
                        is_conjugate,
                        is_conjugate,
                        is_conjugate,
                        Parallelism::None,
                    );
                }
            }
        }
    };
}

element!(f32, gemm_f32::gemm::f32::get_gemm_fn);
element!(f64, gemm_f64::gemm::f64::get_gemm_fn);

/// Computes `product` = `left` · `right`, all three stored by rows.
fn multiply<T: Element>(order: usize, left: &[T], right: &[T], product: &mut [T]) {
    let cells = order * order;
    assert!(left.len() == cells && right.len() == cells && product.len() == cells);
    let column = order as isize;
    // The library is faster by columns, and a matrix by rows is its transpose by columns: (l r)' = r'
    // l'. SAFETY: the assertion shows that each slice holds `order` columns of `order` numbers, which
    // the strides `order` and 1 address. `product` is borrowed mutably, so nobody else accesses it.
    unsafe {
        T::gemm(
            (order, order, order),
            (product.as_mut_ptr(), column, 1),
            (right.as_ptr(), column, 1),
            (left.as_ptr(), column, 1),
        );
    }
}

impl<T: Element> Matrices<T> {
    fn new(order: usize, seed: u64) -> Matrices<T> {
        let mut random = SplitMix(seed);
        let mut numbers = |count: usize| -> Vec<T> {
            (0..count).map(|_| T::of((random.next() >> 40) as f64 / f64::from(1 << 24))).collect()
        };
        let (left, right) = (numbers(order * order), numbers(order * order));
        let probe: Vec<f64> = numbers(order).into_iter().map(T::value).collect();
        let expected = applied(&left, &applied(&right, &probe));
        Matrices { order, left, right, product: vec![T::default(); order * order], probe, expected }
    }

    fn multiply(&mut self) -> ThreadWork {
        multiply(self.order, &self.left, &self.right, &mut self.product);
        ThreadWork { units: 2.0 * (self.order as f64).powi(3), check: 0 }
    }

    /// Freivalds' check: a wrong row of the product makes the two results differ.
    fn check(&self) -> Result<()> {
        let found = applied(&self.product, &self.probe);
        let tolerance = T::EPSILON * self.order as f64;
        for (row, (found, expected)) in found.iter().zip(&self.expected).enumerate() {
            if (found - expected).abs() > tolerance * expected.abs() {
                let reason = format!("row {row}: {found} instead of {expected}");
                return Err(Error::wrong("matrix product", reason));
            }
        }
        Ok(())
    }
}

/// Multiplies the matrix by the vector, in 64 bits.
fn applied<T: Element>(matrix: &[T], vector: &[f64]) -> Vec<f64> {
    matrix
        .chunks_exact(vector.len())
        .map(|row| row.iter().zip(vector).map(|(cell, factor)| cell.value() * factor).sum())
        .collect()
}

/// Measures the product of matrices of order `order`.
///
/// # Errors
/// If a product is wrong, or the caller stops the run.
pub fn measure(session: &mut Session<'_>, lane: Lane, order: usize, threads: usize) -> Result<()> {
    match lane {
        Lane::F32 => measure_as::<f32>(session, lane, order, threads),
        Lane::F64 => measure_as::<f64>(session, lane, order, threads),
        Lane::I32 | Lane::I64 => {
            let name = lane.name();
            Err(Error::BadRequest(format!("the product of {name} is not measured; use f32 or f64")))
        }
    }
}

fn measure_as<T: Element>(
    session: &mut Session<'_>,
    lane: Lane,
    order: usize,
    threads: usize,
) -> Result<()> {
    if order == 0 {
        return Err(Error::BadRequest("matrices of order 0 are empty; use 1 or more".to_owned()));
    }
    let parameters =
        Parameters::new().with("type", lane.name()).with("order", order).with("threads", threads);
    let subject = Subject::new(Area::Cpu, "matrix product", parameters, Unit::FlopPerSecond);
    if !session.wants(&subject) {
        return Ok(());
    }
    let make = |index: usize| Ok(Matrices::<T>::new(order, index as u64));
    let mut states = session.team.prepare(threads, make)?;
    session.measure(subject, Needs::Cpu, |team| {
        let trial = team.run(&mut states, |_, matrices| Ok(matrices.multiply()))?;
        for matrices in &mut states {
            matrices.check()?;
            matrices.product.fill(T::default());
        }
        Ok(trial)
    })
}
